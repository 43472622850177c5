// The outbox: reports to send, in batches whose id and bytes never change.
import type { Source } from "./bits.ts";
import type { Batch, State, StoredReport } from "./state.ts";
import { windowEnd } from "./windows.ts";

/** The most reports in one batch. */
export const BATCH_REPORTS = 100;
/** The most reports that may wait; beyond it the oldest are dropped. */
export const QUEUED_REPORTS = 2000;
/** How many reports are kept for the owner after they were sent, rejected or dropped. */
export const HISTORY_REPORTS = 1000;
/** Seconds for which other tabs do not touch a batch that one tab is sending. */
export const LEASE = 60;
/** Seconds. A time further in the future was written under another clock, and is ignored. */
export const LONGEST_PAUSE = 86400;
/** Seconds after its end for which collectors take the reports of a window. */
const LATEST = 6 * 86400;

const FIRST_BACKOFF = 1;
const LONGEST_BACKOFF = 3600;
/** Seconds after which a report is sent again that the collector could not take yet. */
const ROLLOUT_PAUSE = 1800;

/** A random delay below a bound. It moves a time, never a value, so a float is safe. */
export const uniform = (source: Source, bound: number) => (source.int(53) / 2 ** 53) * bound;

const isQueued = (report: StoredReport) => report.status === "queued";

/** Put up to BATCH_REPORTS waiting reports into a new batch, which nobody sends before `leased`. */
export function assemble(
  state: State,
  reports: readonly StoredReport[],
  leased: number,
  source: Source,
): Batch | undefined {
  if (!reports.length) return undefined;
  const id = source.bits(128).toString(16).padStart(32, "0");
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

/** The next batch to send, leased to the caller; undefined if none is due. `urgent` ignores
 * delays and backoff, but neither Retry-After nor the wait of reports that were left out. */
export function take(state: State, now: number, source: Source, urgent: boolean): Batch | undefined {
  const horizon = now + LONGEST_PAUSE;
  const { until, asked } = state.pause;
  const end = urgent ? asked : until;
  if (now < end && end <= horizon) return undefined;
  const isDue = (time: number) => time <= now || time > horizon;
  // New reports go before batches that have failed, so that a batch that always fails does not
  // delay the rest.
  const batch =
    assemble(
      state,
      state.reports.filter(
        (each) =>
          isQueued(each) && !each.batch && ((urgent && !each.reason) || isDue(each.ready)),
      ),
      now,
      source,
    ) ??
    state.batches
      .filter((each) => urgent || isDue(each.leased))
      .sort((one, other) => one.leased - other.leased)[0];
  if (batch) batch.leased = now + LEASE;
  return batch;
}

/** Nobody sends these batches before a POSIX time. */
export function lease(state: State, ids: readonly string[], time: number): void {
  for (const each of state.batches) if (ids.includes(each.id)) each.leased = time;
}

const removeBatch = (state: State, id: string | undefined) =>
  (state.batches = state.batches.filter((each) => each.id !== id));

const begin = (state: State) => (state.pause = { failures: 0, until: 0, asked: 0 });

/** The collector has the batch; `rejected` has the reason of each place that it left out.
 * Returns for each of these the kind of trouble that it is: its reason if it waits. */
export function acknowledge(
  state: State,
  id: string,
  rejected: ReadonlyMap<number, string>,
  now: number,
  source: Source,
): string[] {
  const retryAt = now + ROLLOUT_PAUSE + uniform(source, ROLLOUT_PAUSE);
  const troubles: string[] = [];
  begin(state);
  removeBatch(state, id);
  state.reports
    .filter((each) => each.batch === id)
    .forEach((each, place) => {
      const reason = rejected.get(place);
      if (reason === undefined) {
        if (isQueued(each)) {
          each.status = "sent";
          delete each.reason;
          delete each.batch;
        }
        return;
      }
      each.reason = reason;
      // The collector's registry or clock is behind.
      const waits =
        /^(unknown_metric|unknown_scheme|window_not_closed)$/.test(reason) &&
        now <= windowEnd(each.window) + LATEST;
      if (waits) {
        delete each.batch;
        each.ready = retryAt;
      } else each.status = "rejected";
      troubles.push(waits ? reason : "rejected");
    });
  return troubles;
}

/** The collector has refused the batch for good. */
export function refuse(state: State, id: string, reason: string): void {
  begin(state);
  removeBatch(state, id);
  for (const each of state.reports)
    if (each.batch === id) {
      each.status = "rejected";
      each.reason = reason;
    }
}

/** An attempt failed: make none before the backoff ends, and no urgent one within `retryAfter`. */
export function postpone(state: State, id: string, retryAfter: number, now: number, source: Source): void {
  const asked = now + Math.min(retryAfter, LONGEST_PAUSE);
  const { failures } = state.pause;
  const backoff = uniform(source, Math.min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** failures));
  const until = Math.max(asked, now + backoff);
  state.pause = { failures: failures + 1, until, asked };
  lease(state, [id], until);
}

/** How many reports wait to be acknowledged. */
export const waiting = (state: State) => state.reports.filter(isQueued).length;

/** The POSIX time from which a batch is due; Infinity when nothing waits. */
export function nextAttempt(state: State): number {
  const times = [
    ...state.batches.map((each) => each.leased),
    ...state.reports.filter((each) => isQueued(each) && !each.batch).map((each) => each.ready),
  ];
  return times.length ? Math.max(Math.min(...times), state.pause.until) : Infinity;
}

/** Keep the outbox and its history within their limits. Returns how many reports were dropped.
 * A batch is dropped as a whole: its bytes are fixed, so it cannot shrink. */
export function trim(state: State): number {
  let dropped = 0;
  const surplus = state.reports.filter(isQueued).slice(0, -QUEUED_REPORTS);
  for (const { batch } of surplus) if (batch) removeBatch(state, batch);
  for (const each of state.reports)
    if (isQueued(each) && (surplus.includes(each) || surplus.some(({ batch }) => batch && batch === each.batch))) {
      each.status = "dropped";
      each.reason = "outbox_full";
      dropped++;
    }
  const history = state.reports.filter((each) => !isQueued(each));
  const old = new Set(history.slice(0, -HISTORY_REPORTS));
  state.reports = state.reports.filter((each) => !old.has(each));
  return dropped;
}

/** Delete the reports that were not sent. Those of a batch that was not acknowledged yet may have
 * arrived, and stay listed as `unanswered`. */
export function withdraw(state: State): void {
  state.batches = [];
  state.reports = state.reports.filter((each) => {
    const queued = isQueued(each);
    if (queued && each.batch) {
      each.status = "unanswered";
      delete each.reason;
    }
    return !queued || each.batch;
  });
}
