// Metrics with memos (`longitudinal = "memoize"`), but those of retention and RAPPOR.
import { dBitFlip } from "../mechanisms/dbitflip.ts";
import { memoizedLocalHashing } from "../mechanisms/memoized_local_hashing.ts";
import { memoizedSubsetSelection } from "../mechanisms/memoized_subset_selection.ts";
import type { Parts } from "../parts.ts";

export { receive } from "../shared.ts";

export default {
  mechanisms: {
    memoized_subset_selection: memoizedSubsetSelection,
    memoized_local_hashing: memoizedLocalHashing,
    dbitflip: dBitFlip,
  },
} satisfies Partial<Parts>;
