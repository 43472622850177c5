import type { Flags, Source } from "../bits.ts";
import type { Odds } from "../exact.ts";
import { flipAll } from "../flips.ts";
import { bitmap, integers, type Mechanism, ONE, type Parameters, refuse } from "./base.ts";
import { withMemos } from "./memo.ts";
import { cellOf, numberRange } from "./number_range.ts";

/**
 * Noisy bits of a histogram (Ding, Kulkarni and Yekhanin, NeurIPS 2017): the cells are dealt to
 * rows, and a device reports the bits of its row, of which that of its own cell is 1. Each bit is
 * flipped once for ever, and once more in each report.
 */
export function dBitFlip(parameters: Parameters): Mechanism {
  const [range, rest] = numberRange(parameters);
  const [cells, bits, memo, fresh] = integers(rest, "cells", "bits", "memo", "fresh");
  if (DEVELOPMENT && ![4, 16, 64, 256].includes(cells)) refuse("cells must be one of 4, 16, 64, 256");
  if (cells % bits) refuse("bits must divide the cells");
  if (Math.max(memo, fresh) >= 2 ** 52) refuse("memo and fresh must be below one half");
  const rows = cells / bits;
  const kept = BigInt(memo);
  const again = BigInt(fresh);
  const wrong = kept * (ONE - again) + again * (ONE - kept);
  // Two cells of a row differ in two bits; a row of one bit has one cell.
  const apart = bits > 1 ? 2 : 1;
  return withMemos({
    position: range.position,
    rows,
    odds: [[ONE * ONE - wrong, wrong, apart] as Odds],
    memoOdds: [[ONE - kept, kept, apart] as Odds],
    freshOdds: [[ONE - again, again, bits] as Odds],
    entry(row, position) {
      const cell = cellOf(range, cells, position as number);
      return cell % rows === row ? Math.floor(cell / rows) : bits;
    },
    memoize(entry, source: Source): Flags {
      const own = Uint8Array.from({ length: bits }, (_, bit) => +(bit === entry));
      return flipAll(own, memo, source);
    },
    respond: (held: Flags, source: Source) => bitmap(flipAll(held, fresh, source)),
  });
}
