import { below, bitLength, coin, type Source } from "../bits.ts";
import type { Odds } from "../exact.ts";
import { subset } from "../subset.ts";
import {
  bitmap,
  type Columns,
  favouring,
  integers,
  limit,
  listed,
  type Mechanism,
  type Parameters,
  refuse,
} from "./base.ts";

/** A mechanism of one row over a closed list, without memos. */
export interface Channel {
  readonly size: number;
  /** How many columns its row has. */
  readonly width: number;
  readonly odds: Odds;
  readonly draw: (place: number, source: Source) => Columns;
}

/**
 * Subset selection over `size` values: with chance truth / 2**53 a uniform set of k values that
 * holds the true one, otherwise a uniform set of k values that does not. With k = 1 it is
 * randomized response.
 */
export function selection(size: number, k: number, truth: number): Channel {
  if (k >= size) refuse("k must be below size");
  const pack = k * bitLength(size - 1) < size ? listed : bitmap;
  return {
    size,
    width: size,
    odds: favouring(truth, k, size),
    draw(place, source) {
      const truthful = coin(truth, source);
      if (k < 2) {
        if (truthful) return place;
        const other = below(size - 1, source);
        return other + +(other >= place);
      }
      const others = subset(size - 1, k - +truthful, source);
      // Open a gap at the true value's place: the others close around it.
      const columns = new Uint8Array(size);
      columns.set(others.subarray(0, place));
      columns[place] = +truthful;
      columns.set(others.subarray(place), place + 1);
      return pack(columns);
    },
  };
}

/** The channel's only row, as a mechanism. */
export function onlyRow({ size, odds, draw }: Channel): Mechanism {
  return {
    size,
    odds: [odds],
    randomize: (place, source) => ({ row: 0, columns: draw(place as number, source) }),
  };
}

export function subsetSelection(parameters: Parameters): Mechanism {
  const [size, k, truth] = integers(parameters, "size", "k", "threshold");
  limit("size", size, 2);
  return onlyRow(selection(size, k, truth));
}
