// What the full entry has and its parts need too. A part's own file holds none of it, so that no page
// loads it twice: scripts/bundles.mjs puts variables in the place of this module and of those below,
// and the entry hands over their values.
import { below, bitLength, coin, sourceOf } from "./bits.ts";
import { hash64, hashBytes, rotate, wrap } from "./hash.ts";
import { bitmap, favouring, integers, limit, MAX_CELLS, ONE, refuse } from "./mechanisms/base.ts";
import { hashed, salted } from "./mechanisms/hashed.ts";
import { cellOf, countUpTo, numberRange, TOP } from "./mechanisms/number_range.ts";
import { geometry, geometryChannel } from "./mechanisms/projective_geometry.ts";
import { selection } from "./mechanisms/subset_selection.ts";
import { read, readReply } from "./transport.ts";
import { windowAt, windowEnd, windowNumber, windowStart } from "./windows.ts";

export const shared: readonly unknown[] = [
  below, bitLength, coin, sourceOf, hash64, hashBytes, rotate, wrap, bitmap, favouring, integers, limit, MAX_CELLS, ONE, refuse,
  hashed, salted, cellOf, countUpTo, numberRange, TOP, geometry, geometryChannel, selection, read, readReply,
  windowAt, windowEnd, windowNumber, windowStart,
];

/** Takes the values, in a part's own file; here they are in place. */
export const receive: (given: typeof shared) => void = () => undefined;
