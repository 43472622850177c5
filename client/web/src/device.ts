// The device: from a recorded value to a sealed report, in one transaction. Draws of random bits
// are in the order of the Python SDK's device, so that both give the same reports from the same
// bits.
import { type Source } from "./bits.ts";
import { allows, charge } from "./ledger.ts";
import type { Metric, RecordedValue } from "./metric.ts";
import type { ReadRegistry } from "./parts.ts";
import { isTaken, uniform, withdrawReports } from "./outbox.ts";
import { accountOf, type Account, type OpenWindow, type State, type StoredReport, type WindowState } from "./state.ts";
import { windowEnd, windowNumber, windowStart } from "./windows.ts";

/** How many closed windows of a metric are stored; older ones are refused. */
const KEPT_WINDOWS = 400;
/** Seconds after its window for which the value of an undeclared metric is kept: a tab with a
 * newer version of the app may still report it. */
const UNDECLARED = 86400;
/** Seconds. A report of a window that ended so long before it is sealed is due at once: the next
 * visit may come when the collector refuses it. */
const LONG_ENDED = 172_800;
/** Seconds within which a report that is sealed at once is sent, at a random moment. */
export const JITTER = 10;
/** Bytes of the key of a metric's memos. */
const KEY = 32;

const isOpen = (found: WindowState | undefined): found is OpenWindow => typeof found === "object";

/** Keep records in their windows and seal the windows that have ended. Reports of closed windows
 * are sent within `spread` seconds, or at once if they ended long ago. Returns the reports that were sealed at once. */
export function write(
  state: State,
  registry: ReadRegistry,
  records: readonly RecordedValue[],
  now: number,
  spread: number,
  source: Source,
): StoredReport[] {
  const joint = FULL ? registry.joint : undefined;

  /** Close a window for ever, which deletes its value: randomize it, queue the report and charge
   * the ledger, unless there is none. Returns the report. */
  const seal = (
    account: Account,
    metric: Metric | undefined,
    window: string,
    text: string | undefined,
    readyAt: () => number,
  ): StoredReport | undefined => {
    let sealed: StoredReport | undefined;
    const place =
      FULL && metric?.segments ? joint!.placeOf(metric.segments, registry.segments, metric.told ?? {}) : 0;
    if (
      metric &&
      // Only a discovery has empty texts.
      (FULL ? text !== undefined && place >= 0 : text) &&
      windowStart(window) < metric.expires &&
      allows(state, account, metric, registry)
    ) {
      const { name, scheme, longitudinal } = metric;
      const ready = readyAt();
      const key = FULL && longitudinal === "memoize" ? Uint8Array.from(account.key!) : null;
      // Of a device that was off for long the collector would refuse it, and it would be charged.
      const report = isTaken(window, ready) && metric.report(text!, source, key);
      if (report) {
        sealed = { metric: name, scheme, window, ...report, ready, status: "queued" };
        if (FULL && place) sealed = { ...sealed, row: sealed.row + place * metric.rows! };
        state.reports.push(sealed);
        charge(account, metric);
      }
    }
    account.windows[window] = sealed ? "answered" : "unanswered";
    prune(account);
    return sealed;
  };

  // Before the first value is kept, so that all copies of a state have the same memos.
  if (FULL)
    for (const [name, { longitudinal }] of registry.metrics)
      if (longitudinal === "memoize") {
        const account = accountOf(state, name);
        // Where memos were reported, a key that is missing was erased.
        if (account.ledger.every((each) => each[3] === null)) account.key ??= [...source.bytes(KEY)];
      }

  const sealedAtOnce: StoredReport[] = [];
  let ready: number | undefined;
  // One delay for all of them, so that the time of sending says little about that of recording.
  const soon = () => (ready ??= now + uniform(source, JITTER));
  for (const { metric, text, window } of (joint
    ? joint.withPairs(records, registry)
    : records) as readonly RecordedValue[]) {
    const account = accountOf(state, metric.name);
    let { windows } = account;
    if (
      !windows[window] &&
      !joint?.isUnasked(registry, metric) &&
      windowEnd(window) > account.horizon &&
      allows(state, account, metric, registry)
    ) {
      // Decided before any value is stored, once for each window, and whatever the value is.
      const { sample_rate, one_in } = metric;
      windows[window] = (
        one_in
          ? (windowNumber(window) - (account.group ??= source.int(53))) % one_in
          : uniform(source, 1) >= sample_rate
      )
        ? "passed"
        : [];
      if (FULL && metric.type === "retention") account.first ??= windowStart(window);
      prune(account);
    }
    let found = windows[window];
    if (joint) {
      if ((text as string | undefined) === undefined) continue;
      const joins = joint.askedPairs(registry, metric, window).some(({ name }) =>
        isOpen(accountOf(state, name).windows[window]),
      );
      if (!joins && joint.isUnasked(registry, metric)) continue;
      const held = account.held?.[window];
      if (isOpen(found)) {
        // The metric is asked since an upgrade of the app inside the window.
        if (held) windows[window] = found = held;
        delete account.held?.[window];
      } else if (joins) {
        windows = account.held ??= {};
        found = held ?? [];
      }
    }
    if (!isOpen(found)) continue;
    const [value, records = 0] = found;
    // A value that waits was recorded while the metric was answered at the close of its windows.
    // It was promised to wait until then, so it does.
    if (metric.answer === "at_once" && !records) {
      const said =
        joint && metric.type === "retention" ? joint.lookBack(account, metric, window) : text;
      const sealed = seal(account, metric, window, said, soon);
      if (sealed) sealedAtOnce.push(sealed);
    } else {
      windows[window] = [
        records ? metric.merge(value!, text, records + 1, source) : FULL ? metric.begin(text) : text,
        records + 1,
      ];
      // Those of the first record stay.
      if (FULL && metric.told) windows[window][2] = found[2] ?? metric.told;
    }
  }

  // One delay for all: devices do not all send at midnight.
  const later = now + uniform(source, spread);
  /** The values that wait, by metric and window: a pair needs them after its metrics are sealed. */
  const waiting = joint ? new Map<string, string | undefined>() : undefined;
  if (joint)
    for (const { name, windows, held } of state.accounts)
      for (const [window, found] of Object.entries({ ...windows, ...held }))
        if (isOpen(found)) waiting!.set(`${name} ${window}`, found[0]);
  state.accounts
    .flatMap(({ name, windows }) =>
      Object.keys(windows)
        .filter((window) => isOpen(windows[window]) && windowEnd(window) <= now)
        .map((window): [number, string, string] => [windowEnd(window), name, window]),
    )
    // In the order of their ends, then of their names: as texts, which do not change it.
    .sort()
    .forEach(([ends, name, window]) => {
      const account = accountOf(state, name);
      let metric = registry.metrics.get(name);
      if (FULL && metric) metric = { ...metric, told: (account.windows[window] as OpenWindow)[2] };
      const [value] = account.windows[window] as OpenWindow;
      if (metric || now >= ends + UNDECLARED)
        seal(
          account,
          metric,
          window,
          joint && metric?.of
            ? joint.join(metric, registry, (part) => waiting!.get(`${part} ${window}`))
            : value,
          () => (now >= ends + LONG_ENDED ? now : later),
        );
    });
  if (FULL)
    for (const { name, held } of state.accounts)
      for (const window in held)
        if (now >= windowEnd(window) + (registry.metrics.has(name) ? 0 : UNDECLARED)) delete held[window];
  return sealedAtOnce;
}

/** Delete the list of closed windows when it is long, and refuse windows up to the last of them
 * from now on. */
function prune(account: Account): void {
  const { windows } = account;
  const closed = Object.keys(windows).filter((window) => !isOpen(windows[window]));
  if (closed.length > KEPT_WINDOWS)
    for (const window of closed) {
      delete windows[window];
      account.horizon = Math.max(account.horizon, windowEnd(window));
    }
}

/** Delete the values of open windows and the reports that were not acknowledged. The ledger, the
 * list of windows and the keys of memos stay, so that agreeing again reveals no more than was
 * declared. */
export function withdraw(state: State): void {
  for (const { windows } of state.accounts)
    for (const window in windows) if (isOpen(windows[window])) windows[window] = [];
  if (FULL) for (const account of state.accounts) delete account.held;
  withdrawReports(state);
}

/** Delete values, all reports, the keys of memos, and when the device was new. Metrics that have reported with memos never
 * do so again. */
export function erase(state: State): void {
  withdraw(state);
  state.reports = [];
  for (const account of state.accounts) {
    delete account.key;
    if (FULL) delete account.first;
  }
}
