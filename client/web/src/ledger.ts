// The ledger: what this device has spent, per metric and in all, exactly.
//
// Without memos a report is allowed while the sum over the metric's reports stays within its
// `lifetimeEpsilon`. With memos each scheme under which the device ever reported is charged the
// epsilon of its memos once, and reports without memos are added; a report is also refused when
// the key of the memos was erased, because another key would make second memos. The registry's
// own `lifetimeEpsilon` caps the sum over all metrics, where a report from a memo costs the
// epsilon of its fresh noise.
import { exact } from "./exact.ts";
import type { Metric, Registry } from "./metric.ts";
import type { Account, State } from "./state.ts";

/** What one report may reveal, whatever the device has reported before. */
const cost = ({ reveals: { report, fresh } }: Metric) => (FULL ? fresh : null) ?? report;

/** The exact sum of the epsilons of the reports of an account, in units of 2**-1074; `memos`
 * takes a scheme's memo in place of the reports from it. */
export const spent = ({ ledger }: Account, memos?: boolean): bigint =>
  ledger.reduce(
    (sum, [, epsilon, reports, memo]) =>
      sum + (FULL && memos && memo !== null ? exact(memo) : exact(epsilon) * BigInt(reports)),
    0n,
  );

const entryOf = ({ ledger }: Account, { scheme }: Metric, epsilon: number) =>
  ledger.find((each) => each[0] === scheme && each[1] === epsilon);

/** Whether one more report stays within the metric's lifetime and the registry's. */
export function allows(state: State, account: Account, metric: Metric, registry: Registry): boolean {
  const memo = FULL ? metric.reveals.memo : null;
  const epsilon = cost(metric);
  const next = memo === null ? epsilon : entryOf(account, metric, epsilon) ? 0 : memo;
  return (
    (memo === null || !!account.key) &&
    spent(account, memo !== null) + exact(next) <= exact(metric.lifetime_epsilon) &&
    (registry.lifetimeEpsilon === null ||
      state.accounts.reduce((sum, each) => sum + spent(each), exact(epsilon)) <=
        exact(registry.lifetimeEpsilon))
  );
}

/** Count one report of the metric under its scheme, and its memos if it has any. */
export function charge(account: Account, metric: Metric): void {
  const epsilon = cost(metric);
  const entry = entryOf(account, metric, epsilon);
  if (entry) entry[2]++;
  else account.ledger.push([metric.scheme, epsilon, 1, metric.reveals.memo]);
}
