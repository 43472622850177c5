// Segments, pairs and discovery.
import { prefixTree } from "../mechanisms/prefix_tree.ts";
import { askedPairs, checkPair, isUnasked, join, withPairs } from "../pairs.ts";
import type { Parts } from "../parts.ts";
import { placeOf, resolve } from "../segments.ts";
import { discovery, isDenyList } from "../types/discovery.ts";
import { pair } from "../types/pair.ts";

export { receive } from "../shared.ts";

/** What the device and the reader of the registry call. */
export const joint = {
  askedPairs,
  checkPair,
  isUnasked,
  join,
  placeOf,
  resolve,
  withPairs,
  ...(DEVELOPMENT && { isDenyList }),
};

export default {
  types: { pair, discovery },
  mechanisms: { prefix_tree: prefixTree },
  joint,
} satisfies Partial<Parts>;
