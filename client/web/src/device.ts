// The device: from a recorded value to a sealed report, in one transaction. Draws of random bits
// are in the order of the Python SDK's device, so that both give the same reports from the same
// bits.
import { coin, type Source } from "./bits.ts";
import { allows, charge } from "./ledger.ts";
import type { Metric } from "./metric.ts";
import { assemble, uniform, withdraw as withdrawReports } from "./outbox.ts";
import type { Registry } from "./registry.ts";
import { accountOf, type Account, type Batch, type State, type StoredReport } from "./state.ts";
import { windowAt, windowEnd, windowStart } from "./windows.ts";

/** How many closed windows of a metric are stored; older ones are refused. */
const KEPT_WINDOWS = 400;
/** Seconds after its window for which the value of an undeclared metric is kept: a tab with a
 * newer version of the app may still report it. */
const UNDECLARED = 86400;
/** Seconds within which a report that is sealed at once is sent, at a random moment. */
export const JITTER = 10;
const KEY_BYTES = 32;

/** One recorded value. It exists only in memory and in the open window. */
export interface RecordedValue {
  readonly metric: Metric;
  readonly text: string;
  readonly window: string;
}

/** Keep records in their windows and seal the windows that have ended. Reports of closed windows
 * are sent within `spread` seconds. Returns the reports that were sealed at once. */
export function write(
  state: State,
  registry: Registry,
  records: readonly RecordedValue[],
  now: number,
  spread: number,
  source: Source,
): StoredReport[] {
  /** Whether a window accepts values. For a new window, `sampleRate` is drawn here. */
  const isOpen = (account: Account, metric: Metric, window: string): boolean => {
    const found = account.windows[window];
    if (found) return found === "open";
    if (windowEnd(window) <= account.horizon || !allows(state, account, metric, registry)) return false;
    const heads = coin(Math.floor(metric.sampleRate * 2 ** 53), source);
    account.windows[window] = heads ? "open" : "passed";
    prune(account);
    return heads;
  };

  /** Close a window for ever: randomize its value, queue the report and charge the ledger, unless
   * there is none; and delete the value. */
  const seal = (
    account: Account,
    metric: Metric | undefined,
    window: string,
    text: string | undefined,
    readyAt: () => number,
  ): StoredReport | undefined => {
    let sealed: StoredReport | undefined;
    if (metric && text !== undefined && allows(state, account, metric, registry)) {
      const ready = readyAt();
      const { name, scheme, longitudinal, expires } = metric;
      if (windowStart(window) < expires) {
        const key = longitudinal === "memoize" ? keyOf(account, source) : null;
        const report = metric.report(text, source, key);
        if (report) {
          if (key) account.key = toHex(key);
          sealed = { metric: name, scheme, window, ...report, ready, status: "queued" };
          state.reports.push(sealed);
          charge(account, metric);
        }
      }
    }
    delete account.values[window];
    account.windows[window] = sealed ? "answered" : "unanswered";
    prune(account);
    return sealed;
  };

  const sealedAtOnce: StoredReport[] = [];
  let ready: number | undefined;
  // One delay for all of them, so that the time of sending says little about that of recording.
  const soon = () => (ready ??= now + uniform(source, JITTER));
  for (const { metric, text, window } of records) {
    const account = accountOf(state, metric.name);
    if (!isOpen(account, metric, window)) continue;
    const found = account.values[window];
    // A value that waits was recorded while the metric was answered at the close of its windows.
    // It was promised to wait until then, so it does.
    if (metric.answer === "at_once" && !found) {
      const sealed = seal(account, metric, window, text, soon);
      if (sealed) sealedAtOnce.push(sealed);
    } else if (found) {
      const [value, records] = found;
      account.values[window] = [metric.merge(value, text, records + 1, source), records + 1];
    } else account.values[window] = [metric.begin(text), 1];
  }

  // One delay for all: devices do not all send at midnight.
  const later = now + uniform(source, spread);
  openWindows(state)
    .filter(({ ends }) => ends <= now)
    .sort(
      (one, other) => one.ends - other.ends || (one.account.name < other.account.name ? -1 : 1),
    )
    .forEach(({ account, window, ends }) => {
      const metric = registry.metrics.get(account.name);
      if (metric || now >= ends + UNDECLARED)
        seal(account, metric, window, account.values[window]?.[0], () => later);
    });
  return sealedAtOnce;
}

/** Put reports that were sealed at once into a batch, in the transaction that sealed them. So its
 * bytes can be sent in the last moment of a page, when no transaction would end any more. */
export function prepare(
  state: State,
  sealed: readonly StoredReport[],
  source: Source,
): Batch | undefined {
  return assemble(state, sealed, sealed[0]?.ready ?? 0, source);
}

/** Delete the oldest closed windows, and refuse windows of that age from now on. */
function prune(account: Account): void {
  const closed = Object.keys(account.windows)
    .filter((window) => account.windows[window] !== "open")
    .map((window) => ({ window, ends: windowEnd(window) }))
    .sort((one, other) => other.ends - one.ends || (one.window < other.window ? -1 : 1));
  for (const { window, ends } of closed.slice(KEPT_WINDOWS)) {
    delete account.windows[window];
    account.horizon = Math.max(account.horizon, ends);
  }
}

const openWindows = (state: State) =>
  state.accounts.flatMap((account) =>
    Object.keys(account.windows)
      .filter((window) => account.windows[window] === "open")
      .map((window) => ({ account, window, ends: windowEnd(window) })),
  );

/** The POSIX time at which the next window ends; Infinity if none is open. */
export const nextEnd = (state: State, now: number) =>
  Math.min(...openWindows(state).map(({ ends }) => (ends > now ? ends : Infinity)));

/** The key of a metric's memos, drawn before its first report. */
const keyOf = ({ key }: Account, source: Source) =>
  key
    ? Uint8Array.from(key.match(/../g)!, (byte) => parseInt(byte, 16))
    : source.bytes(KEY_BYTES).slice();

const toHex = (bytes: Uint8Array) =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Delete the values of open windows and the reports that were not acknowledged. The ledger, the
 * list of windows and the keys of memos stay, so that agreeing again reveals no more than was
 * declared. */
export function withdraw(state: State): void {
  for (const account of state.accounts) account.values = {};
  withdrawReports(state);
}

/** Delete values, all reports, and the keys of memos. Metrics that have reported with memos never
 * do so again. */
export function erase(state: State, now: number): void {
  withdraw(state);
  state.reports = [];
  for (const account of state.accounts) delete account.key;
  state.erased = windowAt("day", now);
}
