import { bitLength, type Flags, type Source } from "./bits.ts";

/** Subsets up to about this many are drawn position by position. */
const SPARSE = 32;

/** Bits of the probability with which a dense subset is scattered before it is corrected. */
const PLANES = 8;

/**
 * A uniformly random set of `count` out of `size` positions. Every step treats all positions
 * alike, so each set is equally likely, exactly. A sparse set is drawn position by position. For a
 * dense one a coin is tossed for every position; the set is then completed or thinned at random.
 */
export function subset(size: number, count: number, source: Source): Flags {
  if (2 * count > size) return subset(size, size - count, source).map((flag) => flag ^ 1);
  const sparse = count <= SPARSE + Math.floor(size / 256);
  const chosen: Flags = sparse ? new Uint8Array(size) : scatter(size, count, source);
  let excess = chosen.reduce((sum, flag) => sum + flag, -count);
  if (excess)
    for (const position of positions(size, Math.abs(excess), source))
      if (chosen[position] === +(excess > 0)) {
        chosen[position] ^= 1;
        excess -= Math.sign(excess);
        if (!excess) break;
      }
  return chosen;
}

/** Uniform positions below `size`, without end, drawn in blocks. */
function* positions(size: number, expected: number, source: Source): Generator<number> {
  const range = 2 ** bitLength(size - 1);
  const words = Math.floor((expected * range) / size) + 8;
  for (;;) {
    // A copy, because a source may give a part of a larger buffer. Its order of bytes is that of the
    // machine: little-endian, as in the vectors, wherever browsers run.
    for (const word of new Uint32Array(source.bytes(4 * words).slice().buffer))
      if (word % range < size) yield word % range;
  }
}

/**
 * Each position independently, with a dyadic probability one standard deviation below count /
 * size: to add a position takes fewer draws than to find one to remove.
 */
function scatter(size: number, count: number, source: Source): Flags {
  const share = count / size;
  const aim = share - Math.sqrt((share * (1 - share)) / size);
  const numerator = Math.max(0, Math.floor(aim * 2 ** PLANES));
  const random = source.bytes(size);
  return new Uint8Array(size).map((chosen, position) => {
    for (let plane = 0; plane < PLANES; plane++) {
      const place = plane * size + position;
      const drawn = random[place >> 3]! >> (place & 7);
      chosen = (numerator >> plane) & 1 ? chosen | drawn : chosen & drawn;
    }
    return chosen & 1;
  });
}
