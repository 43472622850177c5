import type { Mechanism, Parameters } from "./base.ts";
import { hashed } from "./hashed.ts";
import { type Memoizing, withMemos } from "./memo.ts";
import { memoizedSelection } from "./memoized_subset_selection.ts";

/** Randomized response for strings with memory: a device stays in one row, its cohort. */
export function memoizedLocalHashing(parameters: Parameters): Mechanism {
  const { rows, channel, place } = hashed(parameters, memoizedSelection);
  const memoizing: Memoizing<number> = {
    ...channel,
    size: null,
    rows,
    entry: (row, item) => place(row, item as string),
  };
  return withMemos(memoizing);
}
