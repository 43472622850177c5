import { type Source, sourceOf } from "./bits.ts";
import { rotate, wrap } from "./hash.ts";

/** The first 64 bits after the point of the `degree`-th root of a number. */
export function rootBits(number: number, degree: number): bigint {
  const n = BigInt(degree);
  const power = BigInt(number) << (64n * n);
  let root = BigInt(Math.floor(number ** (1 / degree) * 2 ** 32) + 1) << 32n;
  // Newton's method from above, until it falls no more.
  for (let next; (next = ((n - 1n) * root + power / root ** (n - 1n)) / n) < root;) root = next;
  return wrap(root);
}

/** The exclusive or of a word that is rotated to the left by each of these. */
const sigma = (word: bigint, ...by: readonly bigint[]): bigint =>
  by.reduce((all, each) => all ^ rotate(word, each), 0n);

let initial: BigUint64Array | undefined;
let constants: readonly bigint[];

/**
 * SHA-512 (FIPS 180-4), synchronous: a transaction of IndexedDB ends while a page waits for
 * `crypto.subtle`, which insecure contexts lack. It is short instead of fast: a report takes a few
 * dozen blocks. `start` is the state after one block that comes before the message.
 */
export function sha512(message: Uint8Array, start?: BigUint64Array): Uint8Array {
  const padded = new Uint8Array((message.length + 144) & ~127);
  padded.set(message);
  padded[message.length] = 128;
  new DataView(padded.buffer).setUint32(padded.length - 4, (message.length + (start ? 128 : 0)) * 8);
  const out = new DataView(new ArrayBuffer(64));
  absorb(padded, start).forEach((word, at) => out.setBigUint64(at * 8, word));
  return new Uint8Array(out.buffer);
}

/** The state of SHA-512 after whole blocks of 128 bytes, from its beginning or another state. */
function absorb(padded: Uint8Array, start?: BigUint64Array): BigUint64Array {
  if (!initial) {
    const primes: number[] = [];
    for (let each = 2; primes.length < 80; each++)
      if (primes.every((prime) => each % prime)) primes.push(each);
    initial = BigUint64Array.from(primes.slice(0, 8), (prime) => rootBits(prime, 2));
    constants = primes.map((prime) => rootBits(prime, 3));
  }
  const view = new DataView(padded.buffer);
  const hash = (start ?? initial).slice();
  // An array of words keeps the lower 64 bits of a sum.
  const w = new BigUint64Array(80);
  for (let block = 0; block < padded.length; block += 128) {
    let [a, b, c, d, e, f, g, h] = hash as unknown as [
      ...[bigint, bigint, bigint, bigint],
      ...[bigint, bigint, bigint, bigint],
    ];
    constants.forEach((constant, t) => {
      const [x, y] = [w[t - 15]!, w[t - 2]!];
      w[t] =
        t < 16
          ? view.getBigUint64(block + t * 8)
          : w[t - 16]! +
            w[t - 7]! +
            (sigma(x, 63n, 56n) ^ (x >> 7n)) +
            (sigma(y, 45n, 3n) ^ (y >> 6n));
      const first = h + sigma(e, 50n, 46n, 23n) + ((e & f) ^ (~e & g)) + constant + w[t]!;
      const second = sigma(a, 36n, 30n, 25n) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, wrap(d + first), c, b, a, wrap(first + second)];
    });
    [a, b, c, d, e, f, g, h].forEach((word, at) => (hash[at]! += word));
  }
  return hash;
}

/**
 * Sources that always give the same bits for the same key and label: HMAC-SHA-512 in counter mode
 * (NIST SP 800-108). Block i is HMAC(key, label, a zero byte, i as four bytes), from 1 on. Each
 * draw takes whole blocks and drops what it does not need.
 */
export function keyedSource(key: Uint8Array): (label: string) => Source {
  // Both hashes of HMAC begin with the key in a block of its own.
  const keyed = (pad: number) => absorb(new Uint8Array(128).map((_, at) => key[at]! ^ pad));
  const inner = keyed(0x36);
  const outer = keyed(0x5c);
  return (label) => {
    const text = new TextEncoder().encode(`${label}\0....`);
    let block = 0;
    return sourceOf((count) => {
      const bytes = new Uint8Array((count + 63) & ~63);
      for (let at = 0; at < count; at += 64) {
        new DataView(text.buffer).setUint32(text.length - 4, ++block);
        bytes.set(sha512(sha512(text, inner), outer), at);
      }
      return bytes.subarray(0, count);
    });
  };
}
