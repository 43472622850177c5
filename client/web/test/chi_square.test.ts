import assert from "node:assert/strict";
import { test } from "node:test";
import { below, type Source, systemSource } from "../src/bits.ts";
import { full } from "../src/parts/full.ts";
import { subset } from "../src/subset.ts";
import { columnsOf, LIKELIHOODS, outcomes } from "./likelihood.ts";
import { on, vectors } from "./support.ts";

type Any = any;

/** Reports of one item that are counted. */
const REPORTS = 12_000;

/** Of all outcomes together in one test; larger spaces would leave too few reports for each. */
const MOST_OUTCOMES = 1_000;

/**
 * The quantile of the normal distribution at 1 - 2e-9. There are fewer than 500 comparisons, so a
 * false alarm in any of them has a chance of at most 1e-6.
 */
const Z = 5.88;

/** The value that chi-square exceeds with that chance (Wilson and Hilferty, PNAS 1931). */
const limit = (freedom: number): number =>
  freedom * (1 - 2 / (9 * freedom) + Z * Math.sqrt(2 / (9 * freedom))) ** 3;

const F = 4503599627370496;
const ROUNDS = { f: F, p: 2251799813685248, q: 6755399441055744 };

/** Small spaces, beside those of the vectors. */
const SMALL: Readonly<Record<string, [parameters: Any, items: Any[]][]>> = {
  unary_encoding: [[{ size: 4, one: 5066549580791808, zero: 2422408970132804 }, [0, 3]]],
  basic_rappor: [[{ size: 5, ...ROUNDS }, [0, 4]]],
  rappor: [
    [{ salt: "city", cohorts: 2, k: 4, h: 1, ...ROUNDS }, ["Oslo", "Bergen"]],
    [{ salt: "city", cohorts: 3, k: 6, h: 2, ...ROUNDS }, ["Oslo", "Bergen"]],
  ],
  one_time_rappor: [[{ salt: "city", cohorts: 2, k: 5, h: 2, f: F }, ["Oslo", "Bergen"]]],
  dbitflip: [
    [
      { low: "0", high: "1", scale: "linear", integer: 0, cells: 16, bits: 4, memo: 2 ** 50, fresh: 2 ** 51 },
      [-1, 2 ** 28, 2 ** 30],
    ],
  ],
  memoized_local_hashing: [
    [
      { salt: "city", rows: 4, size: 4, k: 1, memo: 6406231707072795, fresh: 5552600225446917 },
      ["Oslo"],
    ],
  ],
};

let comparisons = 0;

/** A report of a device of its own. Its memo comes from the system's source too: that a key gives the
 * memos of the vectors is tested beside them, and takes longer. */
function draw(mechanism: Any, item: Any, source: Source): Any {
  if (!mechanism.memoize) return mechanism.randomize(item, source, null, "");
  const row = below(mechanism.rows, source);
  const memo = mechanism.memoize(mechanism.entry(row, item), source);
  return { row, columns: mechanism.respond(memo, source) };
}

/** Compare the counts of reports with their exact chances. */
function compare(name: string, parameters: Any, item: Any): void {
  const mechanism = full.mechanisms[name]!(parameters);
  const source = systemSource();
  const key = ({ row, columns }: { row: number; columns: Iterable<number> }): string =>
    `${row}:${[...columns].sort((a, b) => a - b).join()}`;
  const counts = new Map<string, number>();
  for (let each = 0; each < REPORTS; each++) {
    const report = draw(mechanism, item, source);
    const seen = key({ row: report.row, columns: columnsOf(report.columns) });
    counts.set(seen, (counts.get(seen) ?? 0) + 1);
  }
  let [total, square, freedom] = [0, 0, -1];
  const rest = { count: 0, expected: 0 };
  const add = (count: number, expected: number): void => {
    square += (count - expected) ** 2 / expected;
    freedom += 1;
  };
  for (const outcome of outcomes(name, parameters)) {
    const chance = LIKELIHOODS[name]!(parameters, outcome.row, outcome.columns, item);
    const count = counts.get(key(outcome)) ?? 0;
    counts.delete(key(outcome));
    total += chance;
    if (chance * REPORTS >= 5) add(count, chance * REPORTS);
    else {
      rest.count += count;
      rest.expected += chance * REPORTS;
    }
  }
  if (rest.expected >= 5) add(rest.count, rest.expected);
  const about = `${name} ${JSON.stringify(parameters)} of ${item}`;
  assert.ok(Math.abs(total - 1) < 1e-9, `${about}: the chances add up to ${total}`);
  assert.equal(counts.size, 0, `${about}: a report that cannot be`);
  assert.ok(
    square <= limit(freedom),
    `${about}: chi-square is ${square}, of ${freedom} degrees of freedom`,
  );
  comparisons += 1;
}

for (const name of Object.keys(full.mechanisms)) {
  const cases: [Any, Any[]][] = vectors(name)
    .mechanisms.filter((each: Any) => each.items)
    .map(({ parameters, items }: Any) => [parameters, items]);

  test(`${name}: the chances of the tests are those of the vectors`, () => {
    for (const [parameters, items] of cases)
      for (const { item, reports } of items)
        for (const { row, columns, likelihood } of reports) {
          const [a, b] = likelihood.split("/").map(BigInt);
          const exact = Number((a * 10n ** 60n) / (b ?? 1n)) / 1e60;
          const ours = LIKELIHOODS[name]!(parameters, row, columnsOf(columns), item);
          assert.ok(
            Math.abs(ours - exact) <= 1e-9 * exact,
            `${name} ${JSON.stringify(parameters)}`,
          );
        }
  });

  test(`${name}: reports are as frequent as their exact chances say`, () => {
    const before = comparisons;
    const small = cases.filter(
      ([p]) => (p.k ?? p.size ?? 0) <= 64 && size(name, p) <= MOST_OUTCOMES,
    );
    for (const [parameters, items] of small.slice(0, 5))
      for (const { item } of items.slice(0, 2)) compare(name, parameters, item);
    for (const [parameters, items] of SMALL[name] ?? [])
      for (const item of items) compare(name, parameters, item);
    assert.ok(comparisons > before, "nothing was compared");
    assert.ok(comparisons < 500);
  });
}

/** How many outcomes there are, without listing too many of them. */
function size(name: string, p: Any): number {
  if (name.includes("rappor") || name === "unary_encoding") return 2 ** (p.k ?? p.size);
  if (p.bits) return (2 ** p.bits * p.cells) / p.bits;
  if (p.k > 1) return p.size <= 12 ? outcomes(name, p).length : Infinity;
  if ((p.q ?? 0) ** (p.t ?? 0) * (p.rows ?? 1) > 4 * MOST_OUTCOMES) return Infinity;
  return outcomes(name, p).length;
}

test("each position is in a dense subset as often as any other", () => {
  const [positions, count] = [70, 34];
  const source = systemSource();
  const counts = new Array<number>(positions).fill(0);
  for (let each = 0; each < REPORTS; each++)
    for (const position of on(subset(positions, count, source))) counts[position]! += 1;
  const share = count / positions;
  const deviation = Math.sqrt(REPORTS * share * (1 - share));
  for (const each of counts)
    assert.ok(Math.abs(each - REPORTS * share) <= Z * deviation, `${each} of ${REPORTS}`);
});
