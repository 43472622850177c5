// The ledger: what this device has spent, per metric and in all, exactly.
//
// Without memos a report is allowed while the sum over the metric's reports stays within its
// `lifetimeEpsilon`. With memos each scheme under which the device ever reported is charged the
// epsilon of its memos once, and reports without memos are added; a report is also refused when
// the key of the memos was erased, because another key would make second memos. The registry's
// own `lifetimeEpsilon` caps the sum over all metrics, where a report from a memo costs the
// epsilon of its fresh noise.
import type { Metric } from "./metric.ts";
import type { Registry } from "./registry.ts";
import type { Account, State } from "./state.ts";

/** A double as an integer in units of 2**-1074, which is exact. */
export function exact(number: number): bigint {
  let shift = 1074;
  for (; number % 1; shift--) number *= 2;
  return BigInt(number) << BigInt(shift);
}

/** What one report may reveal, whatever the device has reported before. */
const cost = ({ reveals }: Metric) => reveals.fresh ?? reveals.report;

/** The exact sum of the epsilons of the reports of these accounts, in units of 2**-1074. */
export function spent(accounts: readonly Account[], counts = (_: Account, _scheme: string) => true): bigint {
  let sum = 0n;
  for (const account of accounts)
    for (const [scheme, epsilon, reports] of account.ledger)
      if (counts(account, scheme)) sum += exact(epsilon) * BigInt(reports);
  return sum;
}

/** Whether one more report stays within the metric's lifetime and the registry's. */
export function allows(state: State, account: Account, metric: Metric, registry: Registry): boolean {
  const { lifetimeEpsilon } = registry;
  return (
    withinLifetime(account, metric) &&
    (lifetimeEpsilon === null || spent(state.accounts) + exact(cost(metric)) <= exact(lifetimeEpsilon))
  );
}

function withinLifetime(account: Account, metric: Metric): boolean {
  const { memos } = account;
  const { memo } = metric.reveals;
  let sum: bigint;
  if (memo === null) sum = spent([account]) + exact(cost(metric));
  else {
    const schemes = Object.keys(memos);
    if (schemes.length && !account.key) return false;
    sum = spent([account], (_, scheme) => !(scheme in memos));
    for (const scheme of schemes) sum += exact(memos[scheme]!);
    if (!(metric.scheme in memos)) sum += exact(memo);
  }
  return sum <= exact(metric.lifetimeEpsilon);
}

/** Count one report of the metric under its scheme, and its memos if it has any. */
export function charge(account: Account, metric: Metric): void {
  const epsilon = cost(metric);
  const { scheme } = metric;
  const entry = account.ledger.find((each) => each[0] === scheme && each[1] === epsilon);
  if (entry) entry[2]++;
  else account.ledger.push([scheme, epsilon, 1]);
  if (metric.reveals.memo !== null) account.memos[scheme] ??= metric.reveals.memo;
}

/** How many more reports are allowed if no other metric is reported; null if there is no limit. */
export function left(state: State, account: Account, metric: Metric, registry: Registry): number | null {
  const rests: bigint[] = [];
  if (metric.reveals.memo === null) rests.push(exact(metric.lifetimeEpsilon) - spent([account]));
  else if (!withinLifetime(account, metric)) return 0;
  if (registry.lifetimeEpsilon !== null)
    rests.push(exact(registry.lifetimeEpsilon) - spent(state.accounts));
  if (!rests.length) return null;
  const rest = rests.reduce((one, other) => (other < one ? other : one));
  return rest < 0n ? 0 : Number(rest / exact(cost(metric)));
}
