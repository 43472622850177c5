/** The bits by which one of the four sigmas turns a word; the last of a small one shifts it. */
type Turns = readonly [bigint, bigint, bigint];

/** A hash function of the SHA-2 family (FIPS 180-4). */
export interface Sha2 {
  /** The bits of a word. */
  readonly bits: number;
  readonly rounds: number;
  readonly turns: readonly [large0: Turns, large1: Turns, small0: Turns, small1: Turns];
  readonly word: (view: DataView, at: number) => bigint;
}

/** Eight words. */
export type Words = readonly bigint[];
type Eight = readonly [...[bigint, bigint, bigint, bigint], ...[bigint, bigint, bigint, bigint]];

let initial: Words | undefined;
let constants: Words | undefined;

/** The first 64 bits after the point of the `degree`-th root of a prime below 512. */
function rootBits(prime: number, degree: bigint): bigint {
  const power = BigInt(prime) << (64n * degree);
  // Newton's method from above, until it falls no more.
  let root = 1n << 67n;
  for (let next; (next = ((degree - 1n) * root + power / root ** (degree - 1n)) / degree) < root;) root = next;
  return BigInt.asUintN(64, root);
}

/** The words after whole blocks, from the function's beginning or from other words. */
export function absorb({ bits, rounds, turns, word }: Sha2, padded: Uint8Array, start?: Words): Words {
  if (!initial || !constants) {
    const primes: number[] = [];
    for (let each = 2; primes.length < 80; each++)
      if (primes.every((prime) => each % prime)) primes.push(each);
    initial = primes.slice(0, 8).map((prime) => rootBits(prime, 2n));
    constants = primes.map((prime) => rootBits(prime, 3n));
  }
  const size = BigInt(bits);
  const spare = 64n - size;
  const wrap = (number: bigint) => BigInt.asUintN(bits, number);
  const turn = (number: bigint, by: bigint) => (number >> by) | (number << (size - by));
  const sigma = (number: bigint, at: number) => {
    const [one, two, three] = turns[at]!;
    return wrap(turn(number, one) ^ turn(number, two) ^ (at < 2 ? turn(number, three) : number >> three));
  };
  const view = new DataView(padded.buffer);
  let words = start ?? initial.map((root) => root >> spare);
  for (let block = 0; block < padded.length; block += 2 * bits) {
    let state = words;
    const w: bigint[] = [];
    for (let t = 0; t < rounds; t++) {
      w[t] =
        t < 16
          ? word(view, block + (t * bits) / 8)
          : wrap(w[t - 16]! + w[t - 7]! + sigma(w[t - 15]!, 2) + sigma(w[t - 2]!, 3));
      const [a, b, c, d, e, f, g, h] = state as Eight;
      const first = h + sigma(e, 1) + ((e & f) ^ (~e & g)) + (constants[t]! >> spare) + w[t]!;
      const second = sigma(a, 0) + ((a & b) ^ (a & c) ^ (b & c));
      state = [wrap(first + second), a, b, c, wrap(d + first), e, f, g];
    }
    words = words.map((each, at) => wrap(each + state[at]!));
  }
  return words;
}

/** The hash of a message. `start`: the words after one block that comes before it. */
export function hash(kind: Sha2, message: Uint8Array, start?: Words): Words {
  const block = 2 * kind.bits;
  // A bit behind the message, and the number of its bits in two words at the end.
  const padded = new Uint8Array(Math.ceil((message.length + 1 + block / 8) / block) * block);
  padded.set(message);
  padded[message.length] = 128;
  new DataView(padded.buffer).setUint32(padded.length - 4, (message.length + (start ? block : 0)) * 8);
  return absorb(kind, padded, start);
}
