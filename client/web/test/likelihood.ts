/**
 * The exact chance of a report, from each mechanism's definition. It shares no code with the
 * randomizers, except for hashes and positions, which have vectors of their own.
 */
import { hash64, hashBytes } from "../src/hash.ts";

type Any = any;
const ONE = 2 ** 53;

/** How many of `size` things are chosen `k` at a time. */
const choose = (size: number, k: number): number => (k ? (choose(size - 1, k - 1) * size) / k : 1);

const points = (q: number, t: number): number => (q ** t - 1) / (q - 1);

/** The vector of a point of a projective space, by its index: the first coordinate that is not 0 is 1. */
function vector(q: number, t: number, index: number): number[] {
  let lead = 0;
  while (index >= q ** (t - 1 - lead)) index -= q ** (t - 1 - lead++);
  const tail = Array.from({ length: t - 1 - lead }, (_, at) => Math.floor(index / q ** at) % q);
  return [...new Array<number>(lead).fill(0), 1, ...tail.reverse()];
}

/** The columns of a report as a set, from any packing. */
export function columnsOf(packed: number | number[] | string): Set<number> {
  if (typeof packed === "number") return new Set([packed]);
  if (typeof packed !== "string") return new Set(packed);
  const bytes = Buffer.from(packed, "base64url");
  return new Set(
    [...bytes.keys()].flatMap((at) =>
      [0, 1, 2, 3, 4, 5, 6, 7].filter((bit) => (bytes[at]! >> bit) & 1).map((bit) => 8 * at + bit),
    ),
  );
}

function subsetOf({ size, k, threshold }: Any, columns: Set<number>, item: number): number {
  const p = threshold / ONE;
  return columns.has(item) ? p / choose(size - 1, k - 1) : (1 - p) / choose(size - 1, k);
}

function point({ q, t, threshold }: Any, column: number, item: number): number {
  const other = vector(q, t, item);
  const inner = vector(q, t, column).reduce((sum, each, at) => sum + each * other[at]!, 0);
  const [near, p] = [points(q, t - 1), threshold / ONE];
  return inner % q ? (1 - p) / (points(q, t) - near) : p / near;
}

/** Independent bits: `one` and `zero` are the chances of a 1 where the filter has 1 and 0. */
function bits(
  size: number,
  filter: Set<number>,
  columns: Set<number>,
  one: number,
  zero: number,
): number {
  let chance = 1;
  for (let at = 0; at < size; at++) {
    const set = filter.has(at) ? one : zero;
    chance *= columns.has(at) ? set : 1 - set;
  }
  return chance;
}

function bloom({ salt, k, h }: Any, row: number, text: string): Set<number> {
  return new Set(
    Array.from({ length: h }, (_, at) => Number(hash64(salt, row * h + at, text) % BigInt(k))),
  );
}

/** How often a bit is 1 after both rounds, where it was 1 and where it was 0. */
function rounds({ f, p, q }: Any): [number, number] {
  const lie = f / ONE / 2;
  return [(q * (1 - lie) + p * lie) / ONE, (p * (1 - lie) + q * lie) / ONE];
}

function windowAt(
  { columns, width, threshold, levels }: Any,
  column: number,
  item: number,
): number {
  const position = Math.min(Math.max(item, 0), 2 ** 30);
  const [inside, outside] = [threshold / ONE / width, (1 - threshold / ONE) / (columns - width)];
  const of = (level: number): number =>
    level <= column && column < level + width ? inside : outside;
  let lower = 0;
  while (lower < levels.length - 2 && levels[lower + 1] <= position) lower++;
  const share = (position - levels[lower]) / (levels[lower + 1] - levels[lower]);
  return of(lower) * (1 - share) + of(lower + 1) * share;
}

function cellAt({ integer, low, high }: Any, cells: number, item: number): number {
  const inner = BigInt(cells - 2);
  const wholes = BigInt(integer ? Number(high) + 1 - Number(low) : 0);
  let cell = 0;
  for (let place = 0n; place <= inner; place++) {
    // Whole numbers are never cut; where there are cells enough, each has its own.
    const parts = wholes || inner;
    const cut = parts > inner ? (place * parts) / inner : place < parts ? place : parts;
    if ((cut * 2n ** 30n) / parts <= BigInt(item)) cell++;
  }
  return cell;
}

function noisyBits(parameters: Any, row: number, columns: Set<number>, item: number): number {
  const { cells, bits: size, memo, fresh } = parameters;
  const rows = cells / size;
  const cell = cellAt(parameters, cells, item);
  const own = new Set(cell % rows === row ? [(cell - row) / rows] : []);
  const [a, g] = [memo / ONE, fresh / ONE];
  const wrong = a * (1 - g) + g * (1 - a);
  return bits(size, own, columns, 1 - wrong, wrong) / rows;
}

function histogram(parameters: Any, row: number, columns: Set<number>, item: number): number {
  const { weights, orders, dimensions, thresholds } = parameters;
  const mean = parameters.mean_columns;
  const height = orders.length;
  const last = {
    columns: mean,
    width: parameters.mean_width,
    threshold: parameters.mean_threshold,
    levels: parameters.mean_levels,
  };
  const first = [...columns][0]!;
  if (row === height) return windowAt(last, first, item) / 4;
  const cell = cellAt(parameters, 4 ** height, item);
  const node = Math.floor(cell / 4 ** (height - 1 - row));
  const share = (weights[row] / 16) * (mean ? 3 / 4 : 1);
  const nodes = 4 ** (row + 1);
  return orders[row]
    ? share * point({ q: orders[row], t: dimensions[row], threshold: thresholds[row] }, first, node)
    : share * subsetOf({ size: nodes, k: 1, threshold: thresholds[row] }, columns, node);
}

const place = ({ salt, size }: Any, row: number, text: string): number =>
  Number(hash64(salt, row, text) % BigInt(size));

const ALPHABETS: Any = { bytes: /[^]/, hex: /[0-9a-f]/, printable: /[ -~]/ };

/** The place of a text in a row of discovery, from its bytes in hexadecimal. */
function branch({ salt, levels, alphabet, size }: Any, row: number, text: string): number {
  const head = Buffer.from(text.normalize()).subarray(0, 2 * levels);
  const known = [...head].every((byte) => ALPHABETS[alphabet].test(String.fromCharCode(byte)));
  const hex = (known ? head.toString("hex") : "").padEnd(4 * levels + 4, "0");
  const prefix = known ? head.subarray(0, 2 * row) : Buffer.of();
  const token = parseInt(hex.slice(4 * row, 4 * row + 4), 16);
  // The remainder of a sum is that of the sum of the remainders.
  return Number((hashBytes(salt, row, prefix) + BigInt(token)) % BigInt(size));
}

/** Two rounds of randomized response and subset selection: the threshold of one report. */
function twoRounds({ size, k, memo, fresh }: Any): Any {
  const [p1, p2] = [memo / ONE, fresh / ONE];
  const q2 = (p2 * (k - 1) + (1 - p2) * k) / (size - 1);
  return { size, k, threshold: (p1 * p2 + (1 - p1) * q2) * ONE };
}

type Likelihood = (parameters: Any, row: number, columns: Set<number>, item: Any) => number;

export const LIKELIHOODS: Readonly<Record<string, Likelihood>> = {
  subset_selection: (p, _, columns, item) => subsetOf(p, columns, item),
  projective_geometry: (p, _, columns, item) => point(p, [...columns][0]!, item),
  unary_encoding: (p, _, columns, item) =>
    bits(p.size, new Set([item]), columns, p.one / ONE, p.zero / ONE),
  hashed_projective_geometry: (p, row, columns, item) =>
    point(p, [...columns][0]!, place({ ...p, size: p.size }, row, item)) / p.rows,
  prefix_tree: (p, row, columns, item) =>
    point(p, [...columns][0]!, branch(p, row, item)) / (p.levels + 1),
  cohort_local_hashing: (p, row, columns, item) =>
    subsetOf(p, columns, place(p, row, item)) / p.rows,
  memoized_subset_selection: (p, _, columns, item) => subsetOf(twoRounds(p), columns, item),
  memoized_local_hashing: (p, row, columns, item) =>
    subsetOf(twoRounds(p), columns, place(p, row, item)) / p.rows,
  basic_rappor: (p, _, columns, item) => bits(p.size, new Set([item]), columns, ...rounds(p)),
  rappor: (p, row, columns, item) =>
    bits(p.k, bloom(p, row, item), columns, ...rounds(p)) / p.cohorts,
  one_time_rappor: (p, row, columns, item) =>
    bits(p.k, bloom(p, row, item), columns, 1 - p.f / ONE / 2, p.f / ONE / 2) / p.cohorts,
  sliding_window: (p, _, columns, item) => windowAt(p, [...columns][0]!, item),
  hierarchical_histogram: histogram,
  dbitflip: noisyBits,
  memoized_retention: (p, row, columns, item) => {
    const cells = p.ages + 2;
    const first = p.lifecycle.length && !row;
    const [k, memo, fresh] = first ? p.lifecycle : p.cohorts;
    const place = first ? Math.floor(item / cells) : item % cells;
    const rows = p.lifecycle.length && p.cohorts.length ? 2 : 1;
    return subsetOf(twoRounds({ size: first ? 3 : cells, k, memo, fresh }), columns, place) / rows;
  },
};

/** All sets of `k` of the numbers below `size`. */
function sets(size: number, k: number): number[][] {
  if (!k) return [[]];
  return size < k
    ? []
    : [...sets(size - 1, k), ...sets(size - 1, k - 1).map((set) => [...set, size - 1])];
}

/** All reports that a mechanism can make: each row with each of its sets of columns. */
export function outcomes(name: string, p: Any): { row: number; columns: Set<number> }[] {
  if (name === "memoized_retention")
    return [[3, p.lifecycle[0]], [p.ages + 2, p.cohorts[0]]]
      .filter(([, k]) => k)
      .flatMap(([size, k], row) => sets(size, k).map((columns) => ({ row, columns: new Set(columns) })));
  const rows: number = p.weights
    ? p.weights.length + (p.mean_columns ? 1 : 0)
    : ((p.alphabet ? p.levels + 1 : p.rows) ?? p.cohorts ?? (p.bits ? p.cells / p.bits : 1));
  const ofRow = (row: number): number[][] => {
    const level = p.weights && row < p.weights.length;
    const order = level ? p.orders[row] : /geometry|tree/.test(name) ? p.q : 0;
    const dimension = level ? p.dimensions[row] : p.t;
    const bitmap = p.bits || name === "unary_encoding" || name.includes("rappor");
    if (bitmap) {
      const size: number = p.bits ?? p.k ?? p.size;
      return Array.from({ length: 2 ** size }, (_, set) =>
        [...new Array(size).keys()].filter((bit) => (set >> bit) & 1),
      );
    }
    const width: number = order
      ? points(order, dimension)
      : level
        ? 4 ** (row + 1)
        : (p.mean_columns ?? p.columns ?? p.size);
    return sets(width, p.k ?? 1);
  };
  return [...new Array(rows).keys()].flatMap((row) =>
    ofRow(row).map((columns) => ({ row, columns: new Set(columns) })),
  );
}
