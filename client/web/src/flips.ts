import { bitLength, type Flags, type Source } from "./bits.ts";

/** The bits of a threshold that a coin is compared with. */
const PRECISION = 53;

/**
 * Randomize each bit on its own: it becomes 1 with chance ifOne / 2**53 where it was 1, and ifZero
 * / 2**53 where it was 0.
 *
 * A coin compares a uniform number with its threshold, from the most significant bit, and is
 * decided by the first one in which they differ. All coins are compared at once, one plane of
 * random bits at a time, drawn in blocks, until none is left undecided.
 */
export function flips(ones: Flags, ifOne: number, ifZero: number, source: Source): Flags {
  const size = ones.length;
  // 2 marks a coin that is not decided yet.
  const heads = new Uint8Array(size).fill(2);
  const bitOf = (threshold: number, plane: number): number =>
    Math.floor(threshold / 2 ** (PRECISION - 1 - plane)) % 2;
  let last = PRECISION;
  while (last && !bitOf(ifOne, last - 1) && !bitOf(ifZero, last - 1)) last--;
  let plane = 0;
  for (let end = bitLength(size) + 3; plane < last && heads.includes(2); end += 4) {
    end = Math.min(end, last);
    const bits = (end - plane) * size;
    const block = source.bytes((bits + 7) >> 3);
    for (let place = -bits & 7; plane < end; plane++) {
      const [one, zero] = [bitOf(ifOne, plane), bitOf(ifZero, plane)];
      for (let at = 0; at < size; at++, place++) {
        const expected = ones[at] ? one : zero;
        if (heads[at] === 2 && ((block[place >> 3]! >> (place & 7)) & 1) !== expected)
          heads[at] = expected;
      }
    }
  }
  // A number equal to its threshold is not below it, so what stays undecided is 0.
  return heads.map((head) => head & 1);
}

/** Flip each bit with chance threshold / 2**53. */
export function flipAll(bits: Flags, threshold: number, source: Source): Flags {
  const flipped = flips(new Uint8Array(bits.length), threshold, threshold, source);
  return bits.map((bit, at) => bit ^ flipped[at]!);
}
