// Segments, pairs, discovery and retention, whose mechanism is in memos.ts.
import { prefixTree } from "../mechanisms/prefix_tree.ts";
import { askedPairs, checkPair, isUnasked, join, withPairs } from "../pairs.ts";
import { placeOf, resolve, valueIn } from "../segments.ts";
import { discovery, isDenyList } from "../types/discovery.ts";
import { pair } from "../types/pair.ts";
import { checkRetention, lookBack, retention } from "../types/retention.ts";

/** What the device and the reader of the registry call. */
export const joint = {
  askedPairs,
  checkPair,
  isUnasked,
  join,
  lookBack,
  placeOf,
  resolve,
  valueIn,
  withPairs,
  ...(DEVELOPMENT && { checkRetention, isDenyList }),
};

export default {
  types: { pair, discovery, retention },
  mechanisms: { prefix_tree: prefixTree },
  joint,
};
