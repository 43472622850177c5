/** A bound on a likelihood ratio, exactly: (numerator / denominator) ** power. */
export type Odds = readonly [numerator: bigint, denominator: bigint, power: number];

/** Fixed-point numbers have so many bits after the point. */
const BITS = 256n;

/** Exponents above this count as this: no mechanism has such odds. */
const MOST = 100;

/**
 * Whether odds are at most e**epsilon, for the double's exact value. The exponential is a lower
 * bound of the true one, correct to more than 200 bits: the terms of its series are positive and
 * rounded down, so nothing that reveals more than epsilon passes.
 */
export function within([numerator, denominator, power]: Odds, epsilon: number): boolean {
  // A double times 2**200 is a whole number, or loses digits far behind those that count.
  const scaled = BigInt(Math.floor(Math.min(epsilon, MOST * power) * 2 ** 200));
  const exponent = (scaled << (BITS - 200n)) / BigInt(power);
  let sum = 0n;
  let term = 1n << BITS;
  for (let n = 1n; term; n++) {
    sum += term;
    term = ((term * exponent) >> BITS) / n;
  }
  return numerator << BITS <= sum * denominator;
}
