import { type Source, sourceOf } from "./bits.ts";

/** The upper 32 bits of the last `sum`. */
let carry = 0;

/** The lower 32 bits of a sum of unsigned numbers. */
function sum(a: number, b: number, c = 0, d = 0, e = 0): number {
  const total = (a >>> 0) + (b >>> 0) + (c >>> 0) + (d >>> 0) + (e >>> 0);
  carry = (total / 2 ** 32) | 0;
  return total | 0;
}

/** The upper half of a word that is rotated to the right; for the lower half swap the halves. */
function turn(upper: number, lower: number, by: number): number {
  // JavaScript shifts by the lowest five bits of a number alone.
  return by < 32 ? (upper >>> by) | (lower << -by) : (lower >>> by) | (upper << -by);
}

function sigma(upper: number, lower: number, a: number, b: number, c: number): number {
  return turn(upper, lower, a) ^ turn(upper, lower, b) ^ turn(upper, lower, c);
}

/** The first 64 bits after the point of the `degree`-th root of a number. */
export function rootBits(number: number, degree: number): [number, number] {
  const n = BigInt(degree);
  const power = BigInt(number) << (64n * n);
  let root = BigInt(Math.floor(number ** (1 / degree) * 2 ** 32) + 1) << 32n;
  // Newton's method from above, until it falls no more.
  for (let next; (next = ((n - 1n) * root + power / root ** (n - 1n)) / n) < root;) root = next;
  return [Number((root >> 32n) & 0xffffffffn), Number(root & 0xffffffffn)];
}

let initial: Int32Array | undefined;
let constants: Int32Array | undefined;

/**
 * SHA-512 (FIPS 180-4), synchronous: a transaction of IndexedDB ends while a page waits for
 * `crypto.subtle`, which insecure contexts lack. Words are pairs of 32 bits, the upper half first.
 * `start` is the state after one block that comes before the message.
 */
export function sha512(message: Uint8Array, start?: Int32Array): Uint8Array {
  const padded = new Uint8Array((message.length + 144) & ~127);
  padded.set(message);
  padded[message.length] = 128;
  new DataView(padded.buffer).setUint32(padded.length - 4, (message.length + (start ? 128 : 0)) * 8);
  const out = new DataView(new ArrayBuffer(64));
  absorb(padded, start).forEach((half, at) => out.setInt32(at * 4, half));
  return new Uint8Array(out.buffer);
}

/** The state of SHA-512 after whole blocks of 128 bytes, from its beginning or another state. */
function absorb(padded: Uint8Array, start?: Int32Array): Int32Array {
  if (!initial || !constants) {
    const primes: number[] = [];
    for (let each = 2; primes.length < 80; each++)
      if (primes.every((prime) => each % prime)) primes.push(each);
    initial = Int32Array.from(primes.slice(0, 8).flatMap((prime) => rootBits(prime, 2)));
    constants = Int32Array.from(primes.flatMap((prime) => rootBits(prime, 3)));
  }
  const view = new DataView(padded.buffer);
  const hash = (start ?? initial).slice();
  const w = new Int32Array(160);
  for (let block = 0; block < padded.length; block += 128) {
    const s = hash.slice();
    for (let t = 0; t < 160; t += 2) {
      if (t < 32) {
        w[t] = view.getInt32(block + t * 4);
        w[t + 1] = view.getInt32(block + t * 4 + 4);
      } else {
        const h0 = w[t - 30]!;
        const l0 = w[t - 29]!;
        const h1 = w[t - 4]!;
        const l1 = w[t - 3]!;
        w[t + 1] = sum(w[t - 31]!, w[t - 13]!, sigma(l0, h0, 1, 8, 7), sigma(l1, h1, 19, 61, 6));
        // These two shift where the others rotate: the bits that come round are taken out.
        w[t] =
          w[t - 32]! +
          w[t - 14]! +
          (sigma(h0, l0, 1, 8, 7) ^ (l0 << 25)) +
          (sigma(h1, l1, 19, 61, 6) ^ (l1 << 26)) +
          carry;
      }
      // Instead of the eight words their places move: word a is where h was a step before.
      const a = -t & 15;
      const b = (2 - t) & 15;
      const c = (4 - t) & 15;
      const d = (6 - t) & 15;
      const e = (8 - t) & 15;
      const f = (10 - t) & 15;
      const g = (12 - t) & 15;
      const h = (14 - t) & 15;
      const ah = s[a]!;
      const al = s[a + 1]!;
      const eh = s[e]!;
      const el = s[e + 1]!;
      const low = sum(
        s[h + 1]!,
        sigma(el, eh, 14, 18, 41),
        (el & s[f + 1]!) ^ (~el & s[g + 1]!),
        constants[t + 1],
        w[t + 1],
      );
      const high =
        s[h]! +
        sigma(eh, el, 14, 18, 41) +
        ((eh & s[f]!) ^ (~eh & s[g]!)) +
        constants[t]! +
        w[t]! +
        carry;
      s[d + 1] = sum(s[d + 1]!, low);
      s[d]! += high + carry;
      s[h + 1] = sum(
        low,
        sigma(al, ah, 28, 34, 39),
        (al & s[b + 1]!) ^ (al & s[c + 1]!) ^ (s[b + 1]! & s[c + 1]!),
      );
      s[h] =
        high + sigma(ah, al, 28, 34, 39) + ((ah & s[b]!) ^ (ah & s[c]!) ^ (s[b]! & s[c]!)) + carry;
    }
    for (let t = 0; t < 16; t += 2) {
      hash[t + 1] = sum(hash[t + 1]!, s[t + 1]!);
      hash[t]! += s[t]! + carry;
    }
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
