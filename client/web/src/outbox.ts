// The outbox: reports to send, in batches whose id and bytes never change.
import type { Source } from "./bits.ts";
import type { Batch, State, StoredReport } from "./state.ts";
import type { Outcome } from "./transport.ts";
import { windowEnd } from "./windows.ts";

/** The most reports in one batch. */
export const BATCH_REPORTS = 100;
/** The most reports that are kept; beyond it the oldest are forgotten, or dropped if they wait. */
export const KEPT_REPORTS = 2000;
/** Seconds for which other tabs do not touch a batch that one tab is sending. */
const LEASE = 60;
/** Seconds. A time further in the future was written under another clock, and is ignored. */
const LONGEST_PAUSE = 86400;

const LONGEST_BACKOFF = 3600;
/** Seconds after which a report is sent again that the collector could not take yet. */
const ROLLOUT_PAUSE = 1800;

/** A random delay below a bound. It moves a time, never a value, so a float is safe. */
export const uniform = (source: Source, bound: number) => (source.int(53) / 2 ** 53) * bound;

const isQueued = ({ status }: StoredReport) => status === "queued";
const isUnsent = (report: StoredReport) => isQueued(report) && !report.batch;

const removeBatch = (state: State, id: string) => {
  state.batches = state.batches.filter((each) => each.id !== id);
};

/** Put up to BATCH_REPORTS waiting reports into a new batch, which nobody sends before `leased`. */
export function assemble(
  state: State,
  reports: readonly StoredReport[],
  leased: number,
  source: Source,
): Batch | undefined {
  if (!reports[0]) return undefined;
  let id = "";
  for (const byte of source.bytes(16)) id = (byte + 256).toString(16).slice(1) + id;
  const body = JSON.stringify({
    batch: id,
    reports: reports.slice(0, BATCH_REPORTS).map((each) => {
      each.batch = id;
      const { metric, scheme, window, row, columns } = each;
      return { metric, scheme, window, row: row || undefined, columns };
    }),
  });
  const batch = { id, body, leased };
  state.batches.push(batch);
  return batch;
}

/** Whether a stored time has come, or was written under another clock. */
export const isDue = (time: number, now: number) => time <= now || time > now + LONGEST_PAUSE;

/** The next batch to send, leased to the caller; undefined if none is due. `urgent` ignores
 * delays and backoff, but neither Retry-After nor the wait of reports that were left out. */
export function take(state: State, now: number, source: Source, urgent?: boolean): Batch | undefined {
  if (!isDue(urgent ? state.asked : state.until, now)) return undefined;
  // New reports go before batches that have failed, so that a batch that always fails does not
  // delay the rest.
  const batch =
    assemble(
      state,
      state.reports.filter((each) => isUnsent(each) && ((urgent && !each.reason) || isDue(each.ready, now))),
      now,
      source,
    ) ??
    state.batches
      .filter((each) => urgent || isDue(each.leased, now))
      .sort((one, other) => one.leased - other.leased)[0];
  if (batch) batch.leased = now + LEASE;
  return batch;
}

/** Store the result of an attempt to send a batch. Returns the troubles, by kind. */
export function settle(
  state: State,
  id: string,
  { rejected, refused, trouble, retryAfter }: Outcome,
  now: number,
  source: Source,
): ReadonlySet<string> {
  const troubles = new Set<string>();
  if (trouble) {
    // Exponential backoff with full jitter.
    const backoff = uniform(source, Math.min(LONGEST_BACKOFF, 2 ** state.failures++));
    state.asked = now + (retryAfter! > 0 ? Math.min(retryAfter!, LONGEST_PAUSE) : 0);
    state.until = Math.max(state.asked, now + backoff);
    for (const each of state.batches) if (each.id === id) each.leased = state.until;
    return troubles.add(trouble);
  }
  // Two tabs may have sent it. The first answer counts: places are those of a whole batch.
  if (!state.batches.some((each) => each.id === id)) return troubles;
  state.failures = state.until = state.asked = 0;
  removeBatch(state, id);
  const retryAt = refused ? 0 : now + ROLLOUT_PAUSE + uniform(source, ROLLOUT_PAUSE);
  state.reports
    .filter((each) => each.batch === id)
    .forEach((each, place) => {
      const reason = refused ?? rejected![place];
      if (reason) {
        each.reason = reason;
        // The collector's registry or clock is behind.
        const waits =
          /^(unknown_(metric|scheme)|window_not_closed)$/.test(reason) && isTaken(each.window, retryAt);
        if (waits) {
          delete each.batch;
          each.ready = retryAt;
        } else each.status = "rejected";
        troubles.add(waits ? reason : "rejected");
      } else if (isQueued(each)) {
        each.status = "sent";
        delete each.reason;
      }
    });
  return troubles;
}

/** Whether collectors take reports of a window at that time: they do until six days after its end. */
export const isTaken = (window: string, now: number) => now - windowEnd(window) <= 6 * 86400;

/** How many reports wait to be acknowledged. */
export const waiting = (state: State) => state.reports.filter(isQueued).length;

/** Keep the outbox within its limit. Returns how many waiting reports were dropped, a batch as a
 * whole: its bytes are fixed, so it cannot shrink. */
export function trim(state: State): number {
  const before = waiting(state);
  while (state.reports.length > KEPT_REPORTS) {
    const { batch } = state.reports.shift()!;
    if (batch) {
      removeBatch(state, batch);
      state.reports = state.reports.filter((each) => each.batch !== batch);
    }
  }
  return before - waiting(state);
}

/** Delete the reports that were not sent. Those of a batch that was not acknowledged yet may have
 * arrived, and stay listed as `unanswered`. */
export function withdrawReports(state: State): void {
  state.batches = [];
  state.reports = state.reports.filter((each) => !isUnsent(each));
  for (const each of state.reports)
    if (isQueued(each)) {
      each.status = "unanswered";
      delete each.reason;
    }
}
