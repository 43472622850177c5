/**
 * Random bits, and exact draws from them. No float is ever compared with a random number: rounding
 * leaks the value in its low bits (Mironov, CCS 2012).
 */

/** A stream of random bytes, read as uniform integers. */
export interface Source {
  /** The next bytes of the stream. */
  bytes(count: number): Uint8Array;
  /** A uniform integer in [0, 2**count) of at most 53 bits: whole bytes, the lowest bits dropped. */
  int(count: number): number;
}

/** One flag for each position: 1 if it is in the set. */
export type Flags = Uint8Array;

/** A source over a function that gives the next bytes. */
export function sourceOf(bytes: (count: number) => Uint8Array): Source {
  return {
    bytes,
    int(count) {
      let value = 0;
      let scale = 1 / (1 << (-count & 7));
      for (const byte of bytes((count + 7) >> 3)) {
        value += Math.floor(byte * scale);
        scale *= 256;
      }
      return value;
    },
  };
}

/** `getRandomValues` gives at most so many bytes at once. */
const MOST = 65536;

/** The browser's cryptographic random numbers, the only source of new randomness. */
export function systemSource(): Source {
  return sourceOf((count) => {
    const bytes = new Uint8Array(count);
    for (let at = 0; at < count; at += MOST) crypto.getRandomValues(bytes.subarray(at, at + MOST));
    return bytes;
  });
}

/** How many bits a number below 2**32 has. */
export function bitLength(number: number): number {
  return 32 - Math.clz32(number);
}

/** A uniform integer in [0, bound), by rejection, which is exact; `bound` is from 1 to 2**32. */
export function below(bound: number, source: Source): number {
  for (;;) {
    const drawn = source.int(bitLength(bound - 1));
    if (drawn < bound) return drawn;
  }
}

/** True with probability exactly threshold / 2**53. */
export function coin(threshold: number, source: Source): boolean {
  return source.int(53) < threshold;
}
