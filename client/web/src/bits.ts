/** A stream of random bytes, read as uniform integers. */
export interface Source {
  /** The next bytes of the stream. */
  bytes(count: number): Uint8Array;
  /** A uniform integer in [0, 2**count): `count` bits in whole bytes, the lowest ones dropped. */
  bits(count: number): bigint;
  /** The same draw as a number, for at most 53 bits. */
  int(count: number): number;
}

const HEX = Array.from({ length: 256 }, (_, byte) => (byte + 256).toString(16).slice(1));

/** A source over a function that gives the next bytes. */
export function sourceOf(bytes: (count: number) => Uint8Array): Source {
  return {
    bytes,
    bits(count) {
      let hex = "";
      for (const byte of bytes((count + 7) >> 3)) hex = HEX[byte]! + hex;
      return BigInt("0x0" + hex) >> BigInt(-count & 7);
    },
    int(count) {
      let value = 0;
      let scale = 2 ** -(-count & 7);
      for (const byte of bytes((count + 7) >> 3)) {
        value += Math.floor(byte * scale);
        scale *= 256;
      }
      return value;
    },
  };
}

/** A source that gives these bytes, for tests. It throws when they are used up. */
export function byteSource(stream: Uint8Array): Source {
  let used = 0;
  return sourceOf((count) => {
    if (used + count > stream.length) throw new RangeError("the stream of random bytes is used up");
    return stream.subarray(used, (used += count));
  });
}

/** More than this at once is refused by `getRandomValues`. */
const BLOCK = 65536;

/** The browser's cryptographic random numbers, the only source of new randomness. */
export function systemSource(): Source {
  let pool = new Uint8Array(0);
  let used = 0;
  return sourceOf((count) => {
    if (used + count > pool.length) {
      pool = new Uint8Array(Math.max(count, 512));
      for (let at = 0; at < pool.length; at += BLOCK)
        crypto.getRandomValues(pool.subarray(at, at + BLOCK));
      used = 0;
    }
    return pool.subarray(used, (used += count));
  });
}

/** A uniform integer in [0, bound), by rejection, which is exact; `bound` is from 1 to 2**32. */
export function below(bound: number, source: Source): number {
  for (;;) {
    const drawn = source.int(32 - Math.clz32(bound - 1));
    if (drawn < bound) return drawn;
  }
}

/** True with probability exactly threshold / 2**53. */
export function coin(threshold: number, source: Source): boolean {
  return source.int(53) < threshold;
}
