// The device's state: one text, read and written as a whole in each transaction. So a transaction
// is all or nothing on any store that can replace one text.
import type { Columns } from "./metric.ts";

/** A window is `passed` if the device does not take part in it, and `unanswered` if it ended
 * without a report. Only an `open` one accepts values. */
export type WindowState = "open" | "passed" | "answered" | "unanswered";

/** What is kept of one metric. */
export interface Account {
  readonly name: string;
  windows: Record<string, WindowState>;
  /** Of an open window: its value so far, and how many records that stands for. */
  values: Record<string, [value: string, records: number]>;
  /** Windows that ended by this POSIX time are refused: they are no longer listed. */
  horizon: number;
  /** The ledger: how many reports there were under each scheme, and the epsilon of each. */
  ledger: [scheme: string, epsilon: number, reports: number][];
  /** The epsilon of the memos of each scheme that ever had any. */
  memos: Record<string, number>;
  /** The key of its memos, in hexadecimal digits. */
  key?: string;
}

export type Status = "queued" | "sent" | "unanswered" | "rejected" | "dropped";

/** One report, in the order of sealing. */
export interface StoredReport {
  readonly metric: string;
  readonly scheme: string;
  readonly window: string;
  readonly row: number;
  readonly columns: Columns;
  /** It may be sent from this POSIX time on. */
  ready: number;
  status: Status;
  /** Why it was rejected or dropped, or why a queued one waits. */
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
  /** How often a person has opted out; a tab that sees another number than before stops. */
  withdrawals: number;
  /** The UTC day of the last erasure. */
  erased?: string;
  accounts: Account[];
  reports: StoredReport[];
  batches: Batch[];
  /** Failed attempts in a row, when backoff ends, and when Retry-After ends. */
  pause: { failures: number; until: number; asked: number };
}

/** That the stored state cannot be trusted. */
export class StateError extends Error {
  override readonly name = "StateError";
}

/** The version of the format, in front of its text. */
const VERSION = "1";

/** A damaged state. It is kept in place of one, so that its ledger does not begin anew. */
export const BLANK = VERSION;

/** The state of a new device. */
export function freshState(app: string): State {
  return {
    app,
    withdrawals: 0,
    accounts: [],
    reports: [],
    batches: [],
    pause: { failures: 0, until: 0, asked: 0 },
  };
}

/** The state in a stored text; undefined if the text is damaged.
 * Throws a StateError if it is another app's or a newer version's. */
export function readState(text: unknown, app: string): State | undefined {
  if (typeof text !== "string" || !text) return undefined;
  const state = text.slice(9);
  if (text[0] === VERSION) {
    if (text.slice(1, 9) !== checksum(state)) return undefined;
    const read = JSON.parse(state) as State;
    if (read.app === app) return read;
  }
  throw new StateError("the stored state is another app's or a newer version's");
}

/** The text that `readState` reads. */
export function writeState(state: State): string {
  const text = JSON.stringify(state);
  return VERSION + checksum(text) + text;
}

/** FNV-1a of 32 bits. With a changed count the ledger would allow more than was declared. */
function checksum(text: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x1000193);
  return (hash >>> 0).toString(16).padStart(8, "0");
}

/** What is kept of a metric; a new metric's is begun. */
export function accountOf(state: State, name: string): Account {
  let account = state.accounts.find((each) => each.name === name);
  if (!account) {
    account = { name, windows: {}, values: {}, horizon: 0, ledger: [], memos: {} };
    state.accounts.push(account);
  }
  return account;
}
