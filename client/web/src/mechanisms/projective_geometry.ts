import { below, coin } from "../bits.ts";
import {
  favouring,
  integers,
  limit,
  MAX_CELLS,
  type Mechanism,
  type Parameters,
  refuse,
} from "./base.ts";
import { type Channel, onlyRow } from "./subset_selection.ts";

/** How many points PG(dimension - 1, order) has. */
function points(order: number, dimension: number): number {
  return dimension && points(order, dimension - 1) * order + 1;
}

/** The number whose product with `number` is 1 modulo a prime. */
function inverse(number: number, prime: number): number {
  return number === 1 ? 1 : (1 - prime * inverse(prime % number, number)) / number + prime;
}

/**
 * Projective geometry response over the first `size` points of PG(dimension - 1, order): with
 * chance truth / 2**53 a uniform point u of the true value's hyperplane, <u, x> = 0, otherwise a
 * uniform point outside of it.
 *
 * A point stands for itself as the vector whose first non-zero coordinate is 1, and has the index
 * of that vector in the order (1, a), (0, 1, a'), ..., the a's being numbers in base `order`.
 */
export function geometry(size: number, order: number, dimension: number, truth: number): Channel {
  const messages = points(order, dimension);
  let divisor = 2;
  while (order % divisor && divisor * divisor <= order) divisor++;
  if (order < 2 || (order !== 2 && order % divisor === 0)) refuse("q must be a prime");
  if (messages > MAX_CELLS) refuse("q and t make too many points");
  if (size > messages) refuse("q and t make fewer points than size");

  const digits = (number: number, count: number): number[] => {
    const found = [];
    while (count--) {
      found.unshift(number % order);
      number = Math.floor(number / order);
    }
    return found;
  };

  return {
    size,
    width: messages,
    odds: favouring(truth, points(order, dimension - 1), messages),
    draw(place, source) {
      // The value's vector without its leading 1, which is coordinate number `lead`.
      let lead = 0;
      for (let block; place >= (block = order ** (dimension - 1 - lead)); lead++) place -= block;
      const value = digits(place, dimension - 1);
      const target = coin(truth, source) ? 0 : 1 + below(order - 1, source);
      // Every vector with this inner product is drawn equally often, and every point has order - 1
      // vectors: all coordinates are free but one, where the value has its leading 1. The zero
      // vector is no point.
      for (;;) {
        const vector = digits(below(order ** (dimension - 1), source), dimension - 1);
        const inner = vector.reduce((sum, each, at) => sum + each * value[at]!, 0);
        vector.splice(lead, 0, (((target - inner) % order) + order) % order);
        const first = vector.findIndex(Boolean);
        if (first < 0) continue;
        const scale = inverse(vector[first]!, order);
        let before = 0;
        let index = 0;
        vector.forEach((each, at) => {
          // The points with fewer zeros in front come first.
          if (at < first) before += order ** (dimension - 1 - at);
          if (at > first) index = index * order + ((each * scale) % order);
        });
        return before + index;
      }
    },
  };
}

export function geometryChannel(parameters: Parameters): Channel {
  const [size, order, dimension, truth] = integers(parameters, "size", "q", "t", "threshold");
  limit("size", size, 2);
  return geometry(size, order, dimension, truth);
}

export function projectiveGeometry(parameters: Parameters): Mechanism {
  return onlyRow(geometryChannel(parameters));
}
