import { integers, limit, type Mechanism, type Parameters, refuse } from "./base.ts";
import { withMemos } from "./memo.ts";
import { memoizedSelection } from "./memoized_subset_selection.ts";

/** New, stayed or returned. */
const LIFECYCLE = 3;

/**
 * Retention: a row for each question that is asked. A device draws its row for ever, and its place
 * in the row is reported by memoized subset selection. An item is (place in the lifecycle) *
 * (ages + 2) + (place among the cohorts). The entries and memos of cohorts follow the three of the
 * lifecycle.
 */
export function memoizedRetention({ window, ages, lifecycle, cohorts, ...rest }: Parameters): Mechanism {
  const cells = (ages as number) + 2;
  if (DEVELOPMENT) {
    const asked = +((cohorts as unknown[]).length > 0);
    limit("ages", ages as number, asked, asked && 52);
    if (!/^(day|week|month)$/.test(window as string)) refuse("window is none");
    integers(rest);
  }
  /** The channel of a question, if it is asked. */
  const channel = (size: number, given: unknown) => {
    const [k, memo, fresh, ...more] = given as number[];
    if (DEVELOPMENT && more.length) refuse("a channel is k, memo and fresh");
    return k === undefined ? undefined : memoizedSelection({ size, k, memo, fresh });
  };
  const first = channel(LIFECYCLE, lifecycle);
  const second = channel(cells, cohorts);
  const one = first ?? second ?? refuse("there is no question");
  const other = second ?? one;
  return withMemos<number>({
    looksBack: true,
    rows: first && second ? 2 : 1,
    odds: [...one.odds, ...other.odds],
    memoOdds: [...one.memoOdds, ...other.memoOdds],
    freshOdds: [...one.freshOdds, ...other.freshOdds],
    entry: (row, item) =>
      row || !first ? LIFECYCLE + ((item as number) % cells) : Math.floor((item as number) / cells),
    memoize: (entry, source) =>
      (entry as number) < LIFECYCLE
        ? one.memoize(entry, source)
        : LIFECYCLE + other.memoize((entry as number) - LIFECYCLE, source),
    respond: (memo, source) =>
      memo < LIFECYCLE ? one.respond(memo, source) : other.respond(memo - LIFECYCLE, source),
  });
}
