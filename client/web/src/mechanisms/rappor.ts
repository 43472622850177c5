import { below, type Flags, type Source } from "../bits.ts";
import type { Odds } from "../exact.ts";
import { flipAll, flips } from "../flips.ts";
import { hash64 } from "../hash.ts";
import {
  bitmap,
  integers,
  limit,
  MAX_CELLS,
  type Mechanism,
  ONE,
  type Parameters,
  refuse,
} from "./base.ts";
import { salted } from "./hashed.ts";
import { withMemos } from "./memo.ts";

/** The longest bitmap. */
const MAX_BITS = 4096;

/** The permanent response: each bit is flipped with chance f / 2**54. */
const permanent = (bits: Flags, f: number, source: Source): Flags => flipAll(bits, f / 2, source);

/** Half of f is the chance that a bit is flipped for ever. */
function even(f: number): bigint {
  if (f % 2) refuse("f must be even");
  return BigInt(f);
}

/** The bits of a number, as many as `size`. */
function flagsOf(number: bigint, size: number): Flags {
  return Uint8Array.from({ length: size }, (_, at) => Number((number >> BigInt(at)) & 1n));
}

/** Two rounds over bitmaps of `size` bits, two of which differ in at most 2 `hashes` bits. */
function rounds(size: number, hashes: number, parameters: Parameters) {
  const [f, p, q] = integers(parameters, "f", "p", "q");
  if (p >= q) refuse("p must be below q");
  const [lie, low, high] = [even(f), BigInt(p), BigInt(q)];
  const truth = 2n * ONE - lie;
  const all = 2n * ONE * ONE;
  // How often a bit that is 1, and one that is 0, is reported as 1, out of `all`.
  const one = high * truth + low * lie;
  const zero = low * truth + high * lie;
  const fresh: Odds[] = [
    [high, low, size],
    [ONE - low, ONE - high, size],
  ];
  return {
    odds: [[one * (all - zero), zero * (all - one), hashes] as Odds],
    memoOdds: [[truth, lie, 2 * hashes] as Odds],
    freshOdds: fresh,
    memoize: (entry: number | bigint, source: Source) =>
      permanent(flagsOf(BigInt(entry), size), f, source),
    respond: (memo: Flags, source: Source) => bitmap(flips(memo, q, p, source)),
  };
}

interface Bloom {
  readonly cohorts: number;
  readonly k: number;
  readonly h: number;
  /** The parameters beside those of the filters. */
  readonly rest: Parameters;
  /** The filter of a string in a cohort, as a bitmap. */
  readonly filter: (cohort: number, text: string) => bigint;
}

/** Bloom filters of strings: h of k bits, by other hash functions in each cohort. */
function bloom(parameters: Parameters): Bloom {
  const [salt, { cohorts: count, k: bits, h: hashes, ...rest }] = salted(parameters);
  const [cohorts, k, h] = integers({ cohorts: count, k: bits, h: hashes }, "cohorts", "k", "h");
  limit("cohorts", cohorts, 1, Math.min(65536, MAX_CELLS / k));
  limit("k", k, 2, MAX_BITS);
  limit("h", h, 1, Math.min(64, k / 2));
  return {
    cohorts,
    k,
    h,
    rest,
    filter(cohort, text) {
      let filter = 0n;
      for (let each = cohort * h; each < cohort * h + h; each++)
        filter |= 1n << (hash64(salt, each, text) % BigInt(k));
      return filter;
    },
  };
}

/** RAPPOR over a closed list: a bit for each value (Erlingsson, Pihur and Korolova, CCS 2014). */
export function basicRappor({ size, ...rest }: Parameters): Mechanism {
  const [bits] = integers({ size }, "size");
  limit("size", bits, 2, MAX_BITS);
  return withMemos({
    ...rounds(bits, 1, rest),
    size: bits,
    rows: 1,
    entry: (_, place) => 1n << BigInt(place),
  });
}

/** RAPPOR over any strings, by their Bloom filters in cohorts. */
export function rappor(parameters: Parameters): Mechanism {
  const { cohorts, k, h, rest, filter } = bloom(parameters);
  return withMemos({
    ...rounds(k, h, rest),
    size: null,
    rows: cohorts,
    entry: (row, text) => filter(row, text as string),
  });
}

/** RAPPOR without its instantaneous round and without memos: each report has new noise. */
export function oneTimeRappor(parameters: Parameters): Mechanism {
  const { cohorts, k, h, rest, filter } = bloom(parameters);
  const [f] = integers(rest, "f");
  const lie = even(f);
  return {
    size: null,
    odds: [[2n * ONE - lie, lie, 2 * h]],
    randomize(text, source) {
      const row = below(cohorts, source);
      return {
        row,
        columns: bitmap(permanent(flagsOf(filter(row, text as string), k), f, source)),
      };
    },
  };
}
