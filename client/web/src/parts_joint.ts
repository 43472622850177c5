import { prefixTree } from "./mechanisms/prefix_tree.ts";
import { allParts } from "./parts_all.ts";
import type { Parts } from "./registry.ts";
import { discovery } from "./types/discovery.ts";
import { pair } from "./types/pair.ts";

/** What the bundle with segments, pairs and discovery has. */
export const jointParts: Parts = {
  types: { ...allParts.types, pair, discovery },
  mechanisms: {
    ...allParts.mechanisms,
    prefix_tree: prefixTree,
  },
};
