import { rootBits } from "./keyed.ts";
import type { Declared } from "./metric.ts";
import type { Segments } from "./segments.ts";

const turn = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** SHA-256 (FIPS 180-4) in hexadecimal, synchronous. */
export function sha256(message: Uint8Array): string {
  const primes: number[] = [];
  for (let each = 2; primes.length < 64; each++)
    if (primes.every((prime) => each % prime)) primes.push(each);
  const constants = primes.map((prime) => rootBits(prime, 3)[0]);
  const hash = Int32Array.from(primes.slice(0, 8), (prime) => rootBits(prime, 2)[0]);
  const padded = new Uint8Array((message.length + 72) & ~63);
  padded.set(message);
  padded[message.length] = 128;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(padded.length - 4, message.length * 8);
  const w = new Int32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    let [a, b, c, d, e, f, g, h] = hash as unknown as [
      ...[number, number, number, number],
      ...[number, number, number, number],
    ];
    for (let t = 0; t < 64; t++) {
      const [x, y] = [w[t - 15]!, w[t - 2]!];
      w[t] =
        t < 16
          ? view.getInt32(block + 4 * t)
          : w[t - 16]! +
            w[t - 7]! +
            (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) +
            (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10));
      const first =
        h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + constants[t]! + w[t]!;
      const second = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, at) => (hash[at]! += word));
  }
  return [...hash].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

/** The fingerprint of a metric's scheme: it names the tally that the reports belong to. */
export function fingerprint(
  { type, mechanism, parameters, values, segments: names = [] }: Declared,
  declared?: Segments,
): string {
  const sorted = Object.fromEntries(
    Object.entries(parameters).sort(([one], [other]) => (one < other ? -1 : 1)),
  );
  const segments = names.map((name) => ({ name, values: declared?.get(name)?.values }));
  const canonical = JSON.stringify({
    mechanism,
    parameters: sorted,
    ...(names.length && { segments }),
    type,
    values,
  });
  return sha256(new TextEncoder().encode(canonical)).slice(0, 12);
}
