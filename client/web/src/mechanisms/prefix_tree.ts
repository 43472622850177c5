import { below } from "../bits.ts";
import { hashBytes } from "../hash.ts";
import { integers, limit, type Mechanism, type Parameters, refuse } from "./base.ts";
import { salted } from "./hashed.ts";
import { geometryChannel } from "./projective_geometry.ts";

/** The most cells of a tally of discovery: a little more than of others. */
const MAX_DISCOVERY_CELLS = 8_650_000;
/** The most tokens of a string. */
const MAX_LEVELS = 16;
/** How many characters of a text are looked at. */
const MAX_TEXT = 1024;

/** The bytes that a head may have, as in a class of a regular expression. */
const ALPHABETS: ReadonlyMap<unknown, string> = new Map([
  // UTF-8 without control characters of ASCII.
  ["bytes", " -~\\x80-\\xbf\\xc2-\\xf4"],
  ["printable", " -~"],
  ["identifier", "\\w.-"],
  ["host", "\\da-z.-"],
  ["lowercase", "a-z"],
  ["hex", "\\da-f"],
]);

/** The first characters of a text; none is cut in two. */
export const first = (text: string, count: number): string =>
  Array.from(text.slice(0, 2 * count))
    .slice(0, count)
    .join("");

/** The part of a text that is looked at, in normal form. */
export const plain = (text: string): string => first(text, MAX_TEXT).normalize().split("\0")[0]!;

/**
 * The place of a head in a row of so many places: where its first bytes fall, and from there as many
 * places on as the next two bytes say. After its end these are 0; so they are in the last row.
 */
export function placeOf(salt: string, row: number, head: Uint8Array, width: number): number {
  const at = 2 * row;
  const base = Number(hashBytes(salt, row, head.subarray(0, at)) % BigInt(width));
  return (base + (head[at] ?? 0) * 256 + (head[at + 1] ?? 0)) % width;
}

/**
 * Discovery (docs/reference/protocol.md): row r of levels + 1 rows counts which two bytes follow the first 2r
 * bytes of a string, and the last row counts whole strings. The row is drawn afresh for each report,
 * and the place of the string in it goes through projective geometry response.
 */
export function prefixTree(parameters: Parameters): Mechanism {
  const [salt, { levels: count, alphabet, ...rest }] = salted(parameters);
  const [levels] = integers({ levels: count }, "levels");
  limit("levels", levels, 1, MAX_LEVELS);
  const { size, width, odds, draw } = geometryChannel(rest);
  if (DEVELOPMENT && size !== width) refuse("size must be all points of the space");
  if (DEVELOPMENT && (levels + 1) * width > MAX_DISCOVERY_CELLS)
    refuse("levels and points make too many cells in all");
  const allowed = RegExp(`^[${ALPHABETS.get(alphabet) ?? refuse("alphabet is unknown")}]*$`);

  /** The bytes of a text that can be found; none if one is not in the alphabet. */
  const head = (text: string): Uint8Array => {
    const bytes = new TextEncoder().encode(plain(text)).subarray(0, 2 * levels);
    return allowed.test(String.fromCharCode(...bytes)) ? bytes : new Uint8Array();
  };

  return {
    head,
    odds: [odds],
    randomize(item, source) {
      const row = below(levels + 1, source);
      const place = placeOf(salt, row, head(item as string), width);
      return { row, columns: draw(place, source) };
    },
  };
}
