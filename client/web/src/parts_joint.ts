import { memoizedRetention } from "./mechanisms/memoized_retention.ts";
import { prefixTree } from "./mechanisms/prefix_tree.ts";
import { allParts } from "./parts_all.ts";
import type { Parts } from "./registry.ts";
import { discovery } from "./types/discovery.ts";
import { pair } from "./types/pair.ts";
import { retention } from "./types/retention.ts";

/** What the bundle with segments, pairs, discovery and retention has. */
export const jointParts: Parts = {
  types: { ...allParts.types, pair, discovery, retention },
  mechanisms: {
    ...allParts.mechanisms,
    prefix_tree: prefixTree,
    memoized_retention: memoizedRetention,
  },
};
