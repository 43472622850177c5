const C1 = 0x87c37b91114253d5n;
const C2 = 0x4cf5ad432745937fn;

const wrap = (number: bigint): bigint => BigInt.asUintN(64, number);

const rotate = (number: bigint, by: bigint): bigint =>
  wrap((number << by) | (number >> (64n - by)));

function mix(number: bigint): bigint {
  number = wrap((number ^ (number >> 33n)) * 0xff51afd7ed558ccdn);
  number = wrap((number ^ (number >> 33n)) * 0xc4ceb9fe1a85ec53n);
  return number ^ (number >> 33n);
}

/** MurmurHash3 x64 128 (Austin Appleby, public domain): its lower and its upper half. */
export function murmur(bytes: Uint8Array, seed: number): [bigint, bigint] {
  let lower = BigInt(seed);
  let upper = lower;
  // The last block, which may be empty, is padded with zeros; mixing zeros in changes nothing.
  const padded = new Uint8Array((bytes.length & ~15) + 16);
  padded.set(bytes);
  const view = new DataView(padded.buffer);
  for (let at = 0; at < padded.length; at += 16) {
    lower ^= wrap(rotate(wrap(view.getBigUint64(at, true) * C1), 31n) * C2);
    const other = wrap(rotate(wrap(view.getBigUint64(at + 8, true) * C2), 33n) * C1);
    if (at + 16 > bytes.length) upper ^= other;
    else {
      lower = wrap((rotate(lower, 27n) + upper) * 5n + 0x52dce729n);
      upper = wrap((rotate(upper ^ other, 31n) + lower) * 5n + 0x38495ab5n);
    }
  }
  const length = BigInt(bytes.length);
  lower = wrap((lower ^= length) + (upper ^= length));
  upper = mix(wrap(upper + lower));
  lower = wrap(mix(lower) + upper);
  return [lower, wrap(upper + lower)];
}

/**
 * Where a string falls in one row of the public hash tables under a salt, a number in
 * [0, 2**64). The hash hides nothing; privacy comes from the noise alone.
 */
export function hash64(salt: string, row: number, text: string): bigint {
  return murmur(new TextEncoder().encode(`${salt}\0${text.normalize()}`), row >> 1)[row & 1]!;
}

/** The same of bytes in place of a text. */
export const hashBytes = (salt: string, row: number, bytes: Uint8Array): bigint =>
  murmur(Uint8Array.of(...new TextEncoder().encode(`${salt}\0`), ...bytes), row >> 1)[row & 1]!;
