// The device's state: one text, read and written as a whole in each transaction. So a transaction
// is all or nothing in any store that can replace one text.
import { type Columns, refuse } from "./mechanisms/base.ts";
import type { Told } from "./segments.ts";

/** A window is `passed` if the device does not take part in it, and `unanswered` if it ended
 * without a report. An open one has its value so far, how many records that stands for, and the
 * segments of the first of them, if its metric has any; or nothing. */
export type WindowState = "passed" | "answered" | "unanswered" | OpenWindow;

export type OpenWindow = [value?: string, records?: number, segments?: Told];

/** What is kept of one metric. */
export interface Account {
  readonly name: string;
  windows: Record<string, WindowState>;
  /** Values that wait for a pair alone: the metric itself is not asked in that window. */
  held?: Record<string, OpenWindow>;
  /** Windows that ended by this POSIX time are refused: they are no longer listed. */
  horizon: number;
  /** What the device has drawn once to decide in which windows it takes part: 53 bits, of which
   * `one_in` takes the remainder. */
  group?: number;
  /** When the first window began in which the device was active: POSIX seconds, for ever. Only of a
   * metric that looks back. */
  first?: number;
  /** The ledger: how many reports there were under each scheme, and the epsilon of each. With
   * memos also the epsilon of a memo, else null. */
  ledger: [scheme: string, epsilon: number, reports: number, memo: number | null][];
  /** The key of its memos: bytes. */
  key?: number[];
}

/** One report, in the order of sealing. */
export interface StoredReport {
  readonly metric: string;
  readonly scheme: string;
  readonly window: string;
  readonly row: number;
  readonly columns: Columns;
  /** It may be sent from this POSIX time on. */
  ready: number;
  status: "queued" | "sent" | "unanswered" | "rejected" | "dropped";
  /** Why it was rejected, or why a queued one waits. */
  reason?: string;
  /** The batch that it is in; its place there is its place among the reports of that batch. */
  batch?: string;
}

/** What is sent: the same bytes under the same id, until they are acknowledged. */
export interface Batch {
  readonly id: string;
  readonly body: string;
  /** Nobody sends it before this POSIX time. */
  leased: number;
}

export interface State {
  readonly app: string;
  /** The POSIX time at which the person last opted out, or 0; a tab that began before it stops. */
  withdrawn: number;
  accounts: Account[];
  reports: StoredReport[];
  batches: Batch[];
  /** Failed attempts in a row. */
  failures: number;
  /** The POSIX times at which backoff ends, and Retry-After. */
  until: number;
  asked: number;
}

/** The text of a new device's state. */
export const freshState = (app: string): string =>
  writeState({ app, accounts: [], reports: [], batches: [], withdrawn: 0, failures: 0, until: 0, asked: 0 });

/** The state in a stored text. Throws an Error if it cannot be trusted. */
export function readState(text: unknown, app: string): State {
  const [json] = (text as string).split("\n") as [string];
  const state = (signed(json) === text && JSON.parse(json)) as State;
  return state.app === app
    ? state
    : refuse("the stored state is damaged, so nothing is reported: in development, delete the data of this site");
}

/** The text that `readState` reads. */
export const writeState = (state: State): string => signed(JSON.stringify(state));

/** A text with the version of the format and FNV-1a of 32 bits on a line behind it: with a changed
 * count the ledger would allow more than was declared. */
function signed(json: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < json.length; ) hash = Math.imul(hash ^ json.charCodeAt(at++), 0x1000193);
  return `${json}\n1${hash}`;
}

/** What is kept of a metric; a new metric's is begun. */
export function accountOf(state: State, name: string): Account {
  let account = state.accounts.find((each) => each.name === name);
  if (!account) state.accounts.push((account = { name, windows: {}, horizon: 0, ledger: [] }));
  return account;
}
