import { integers, limit, type Mechanism, type Parameters, refuse } from "./base.ts";
import { cellOf, numberRange, TOP } from "./number_range.ts";
import { geometry } from "./projective_geometry.ts";
import { list, slidingWindow } from "./sliding_window.ts";
import { type Channel, selection } from "./subset_selection.ts";

/** The most columns of one level. */
const MAX_COLUMNS = 4096;

/** How one level of `nodes` nodes shares its columns: order 0 is plain randomized response. */
function level(nodes: number, order: number, dimension: number, truth: number): Channel {
  if (DEVELOPMENT && !order && dimension !== 1) refuse("dimensions must be 1 where orders is 0");
  const channel = order ? geometry(nodes, order, dimension, truth) : selection(nodes, 1, truth);
  limit("columns", channel.width, 1, MAX_COLUMNS);
  return channel;
}

/**
 * The cell of a number, told at one of several resolutions: level l joins the 4**height cells to
 * 4**l nodes, and has a channel of its own for them. The device draws a level, whatever its value
 * is. If the mean is asked for as well, 1 of 4 devices reports the last row, a sliding window.
 */
export function hierarchicalHistogram(parameters: Parameters): Mechanism {
  const [range, { weights, orders, dimensions, thresholds, ...rest }] =
    numberRange(parameters);
  const sixteenths = list("weights", weights, 1, 16);
  const order = list("orders", orders, 0, MAX_COLUMNS);
  const dimension = list("dimensions", dimensions, 1, 13);
  const truths = list("thresholds", thresholds, 1, Number.MAX_SAFE_INTEGER);
  const height = order.length;
  limit("orders", height, 1, 5);
  // Lists that are too short fail below, and weights only say how often a row is drawn.
  if (DEVELOPMENT) {
    if (sixteenths.length !== height || dimension.length !== height || truths.length !== height)
      refuse("orders, dimensions, thresholds and weights must have the same length");
    if (sixteenths.reduce((sum, each) => sum + each) !== 16) refuse("weights must be 16 in all");
  }
  const levels = order.map((each, at) => level(4 ** (at + 1), each, dimension[at]!, truths[at]!));

  // A row for each number of 4 or 6 random bits.
  let rows = sixteenths.flatMap((weight, row) => new Array<number>(weight).fill(row));
  const odds = levels.map((each) => each.odds);
  const { mean_levels, ...mean } = rest;
  let window: ReturnType<typeof slidingWindow> | undefined;
  if (Object.keys(rest).length) {
    const [columns, width, truth] = integers(mean, "mean_columns", "mean_width", "mean_threshold");
    window = slidingWindow(columns, width, truth, list("mean_levels", mean_levels, 0, TOP));
    odds.push(window.odds);
    rows = [...rows, ...rows, ...rows, ...new Array<number>(16).fill(height)];
  }

  return {
    position: range.position,
    odds,
    randomize(item, source) {
      const row = rows[source.int(window ? 6 : 4)]!;
      if (row === height) return { row, columns: window!.draw(item as number, source) };
      const cell = cellOf(range, 4 ** height, item as number);
      return { row, columns: levels[row]!.draw(cell >> (2 * (height - 1 - row)), source) };
    },
  };
}
