import type { Odds } from "../exact.ts";
import { integers, limit, type Mechanism, ONE, type Parameters } from "./base.ts";
import { type Memoizing, withMemos } from "./memo.ts";
import { selection } from "./subset_selection.ts";

/**
 * Subset selection with memory: the memo of a value is its randomized response, and each report
 * a fresh subset selection from the memo.
 */
export function memoizedSelection(
  parameters: Parameters,
): Memoizing<number> & { size: number; width: number } {
  const [size, k, memo, fresh] = integers(parameters, "size", "k", "memo", "fresh");
  limit("size", size, 2);
  const permanent = selection(size, 1, memo);
  const instantaneous = selection(size, k, fresh);
  // p = p1 p2 + (1 - p1) q2 with q2 = (p2 (k-1) + (1-p2) k) / (size-1), over 2**106 (size-1).
  const [d, j, p1, p2] = [size, k, memo, fresh].map(BigInt) as [bigint, bigint, bigint, bigint];
  const held = p1 * p2 * (d - 1n) + (ONE - p1) * (p2 * (j - 1n) + (ONE - p2) * j);
  const odds: Odds = [held * (d - j), (ONE * ONE * (d - 1n) - held) * j, 1];
  return {
    size,
    width: size,
    rows: 1,
    odds: [odds],
    memoOdds: [permanent.odds],
    freshOdds: [instantaneous.odds],
    entry: (_, item) => item as number,
    memoize: (entry, source) => permanent.draw(entry as number, source) as number,
    respond: instantaneous.draw,
  };
}

export function memoizedSubsetSelection(parameters: Parameters): Mechanism {
  return withMemos(memoizedSelection(parameters));
}
