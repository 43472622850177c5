import { below } from "../bits.ts";
import { hash64 } from "../hash.ts";
import { integers, type Item, limit, MAX_CELLS, type Mechanism, type Parameters, refuse } from "./base.ts";
import { withMemos } from "./memo.ts";
import { memoizedSelection } from "./memoized_subset_selection.ts";
import { geometryChannel } from "./projective_geometry.ts";

/** The salt of a hash, and the parameters beside it. */
export function salted({ salt, ...rest }: Parameters): [salt: string, rest: Parameters] {
  if (DEVELOPMENT && (typeof salt !== "string" || !salt || salt.includes("\0")))
    refuse("salt must be a text without zero bytes");
  return [salt as string, rest];
}

interface Hashed<C> {
  readonly rows: number;
  readonly channel: C;
  /** Which value of the channel a string stands for in a row. */
  readonly place: (row: number, text: string) => number;
}

/** A channel over the hash values of strings, in salted rows. */
function hashed<C extends { readonly size: number; readonly width: number }>(
  parameters: Parameters,
  makeChannel: (rest: Parameters) => C,
): Hashed<C> {
  const [salt, { rows: count, ...rest }] = salted(parameters);
  const channel = makeChannel(rest);
  const [rows] = integers({ rows: count }, "rows");
  limit("rows", rows, 1, Math.min(65536, MAX_CELLS / channel.width));
  return {
    rows,
    channel,
    place: (row, text) => Number(hash64(salt, row, text) % BigInt(channel.size)),
  };
}

/** Projective geometry response for strings. The row is drawn afresh for each report, so that it
 * links nothing. */
export function hashedProjectiveGeometry(parameters: Parameters): Mechanism {
  const { rows, channel, place } = hashed(parameters, geometryChannel);
  return {
    size: null,
    odds: [channel.odds],
    randomize(item, source) {
      const row = below(rows, source);
      return { row, columns: channel.draw(place(row, item as string), source) };
    },
  };
}

/** Randomized response for strings with memory: a device stays in one row, its cohort. */
export function memoizedLocalHashing(parameters: Parameters): Mechanism {
  const { rows, channel, place } = hashed(parameters, memoizedSelection);
  const entry = (row: number, item: Item) => place(row, item as string);
  return withMemos({ ...channel, size: null, rows, entry });
}
