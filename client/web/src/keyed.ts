import { type Source, sourceOf } from "./bits.ts";
import { absorb, hash, type Sha2, type Words } from "./sha2.ts";

const SHA512: Sha2 = {
  bits: 64,
  rounds: 80,
  turns: [[28n, 34n, 39n], [14n, 18n, 41n], [1n, 8n, 7n], [19n, 61n, 6n]],
  word: (view, at) => view.getBigUint64(at),
};

/**
 * SHA-512, synchronous: a transaction of IndexedDB ends while a page waits for `crypto.subtle`,
 * which insecure contexts lack. `start` is what `hash` takes.
 */
export function sha512(message: Uint8Array, start?: Words): Uint8Array {
  const out = new DataView(new ArrayBuffer(64));
  hash(SHA512, message, start).forEach((word, at) => out.setBigUint64(8 * at, word));
  return new Uint8Array(out.buffer);
}

/**
 * Sources that always give the same bits for the same key and label: HMAC-SHA-512 in counter mode
 * (NIST SP 800-108). Block i is HMAC(key, label, a zero byte, i as four bytes), from 1 on. Each
 * draw takes whole blocks and drops what it does not need.
 */
export function keyedSource(key: Uint8Array): (label: string) => Source {
  // Both hashes of HMAC begin with the key in a block of its own.
  const keyed = (pad: number) => absorb(SHA512, new Uint8Array(128).map((_, at) => key[at]! ^ pad));
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
