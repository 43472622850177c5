/** A bound on a likelihood ratio, exactly: (numerator / denominator) ** power. */
export type Odds = readonly [numerator: bigint, denominator: bigint, power: number];

/** A double as an integer in units of 2**-1074, of which every double is a whole multiple. */
export function exact(number: number): bigint {
  let shift = 1074;
  for (; number % 1; shift--) number *= 2;
  return BigInt(number) << BigInt(shift);
}

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
  const exponent = (exact(Math.min(epsilon, MOST * power)) >> (1074n - BITS)) / BigInt(power);
  let sum = 0n;
  let term = 1n << BITS;
  for (let n = 1n; term; n++) {
    sum += term;
    term = ((term * exponent) >> BITS) / n;
  }
  return numerator << BITS <= sum * denominator;
}
