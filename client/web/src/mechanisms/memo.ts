import { below, type Source } from "../bits.ts";
import { keyedSource } from "../keyed.ts";
import { type Columns, type Item, type Mechanism, refuse, type Report } from "./base.ts";

/**
 * A mechanism with memos. A device has one row for ever. A value falls into an entry of that row,
 * and the permanent response to an entry is its memo. Neither is stored: both are computed from a
 * random key of the metric, so they are the same every time.
 */
export interface Memoizing<Memo>
  extends Pick<Mechanism, "size" | "position" | "looksBack" | "odds">,
    Required<Pick<Mechanism, "memoOdds" | "freshOdds">> {
  readonly rows: number;
  /** Which entry a value falls into, for a device of that row. */
  entry(row: number, item: Item): number | bigint;
  /** The permanent response to an entry. */
  memoize(entry: number | bigint, source: Source): Memo;
  /** One report, with fresh noise, from a memo. */
  respond(memo: Memo, source: Source): Columns;
}

/** The row of a device, and its memo of a value, under the scheme of that fingerprint. */
export function recall<Memo>(
  memoizing: Memoizing<Memo>,
  item: Item,
  key: Uint8Array,
  scheme: string,
): { row: number; memo: Memo } {
  const keyed = keyedSource(key);
  const row = below(memoizing.rows, keyed(`${scheme} row`));
  const entry = memoizing.entry(row, item);
  const source = keyed(`${scheme} memo ${row} ${entry.toString(16)}`);
  return { row, memo: memoizing.memoize(entry, source) };
}

/** A mechanism that keeps the memos of a device by its key; without a key there is no report. */
export function withMemos<Memo>(memoizing: Memoizing<Memo>): Mechanism {
  return {
    ...memoizing,
    randomize(item: Item, source: Source, key: Uint8Array | null, scheme: string): Report {
      if (!key) refuse("a metric with memos needs its key");
      const { row, memo } = recall(memoizing, item, key, scheme);
      return { row, columns: memoizing.respond(memo, source) };
    },
  };
}
