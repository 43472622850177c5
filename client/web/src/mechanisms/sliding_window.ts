import { below, coin, type Source } from "../bits.ts";
import type { Odds } from "../exact.ts";
import { favouring, integers, limit, type Mechanism, type Parameters, refuse } from "./base.ts";
import { countUpTo, numberRange, TOP } from "./number_range.ts";

/** A list of integers, each from `lowest` to `highest`. */
export function list(name: string, values: unknown, lowest: number, highest: number): number[] {
  if (!Array.isArray(values) || !values.every(Number.isSafeInteger))
    return refuse(`${name} must be a list of integers`);
  if (DEVELOPMENT) for (const each of values as number[]) limit(name, each, lowest, highest);
  return values as number[];
}

export interface Window {
  readonly odds: Odds;
  readonly draw: (position: number, source: Source) => number;
}

/**
 * A window of `width` out of `columns` for each level: a position is rounded to one of the two
 * levels next to it, at random so that its expectation stays. With chance truth / 2**53 a report
 * is a uniform column of the level's window, otherwise one outside of it.
 */
export function slidingWindow(
  columns: number,
  width: number,
  truth: number,
  levels: readonly number[],
): Window {
  limit("columns", columns, 2, 256);
  if (DEVELOPMENT && columns % 2) refuse("columns must be even");
  if (width >= columns) refuse("width must be below columns");
  const rising = levels.every((level, at) => (at ? level > levels[at - 1]! : !level));
  if (!rising || levels.length !== columns - width + 1 || levels[levels.length - 1] !== TOP)
    refuse(`levels must be ${columns - width + 1} integers that increase from 0 to ${TOP}`);
  return {
    odds: favouring(truth, width, columns),
    draw(position, source) {
      const inside = Math.min(Math.max(position, 0), TOP - 1);
      const lower = countUpTo(inside, levels.length, (at) => levels[at]!) - 1;
      const start = levels[lower]!;
      const gap = levels[lower + 1]! - start;
      const level = lower + +(below(gap, source) < Math.min(Math.max(position, 0), TOP) - start);
      if (coin(truth, source)) return level + below(width, source);
      const other = below(columns - width, source);
      return other < level ? other : other + width;
    },
  };
}

export function slidingWindowMechanism(parameters: Parameters): Mechanism {
  const [{ position }, { levels, ...rest }] = numberRange(parameters);
  const [columns, width, truth] = integers(rest, "columns", "width", "threshold");
  const { odds, draw } = slidingWindow(columns, width, truth, list("levels", levels, 0, TOP));
  return {
    position,
    odds: [odds],
    randomize: (item, source) => ({ row: 0, columns: draw(item as number, source) }),
  };
}
