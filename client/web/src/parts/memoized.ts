import { memoizedLocalHashing } from "../mechanisms/hashed.ts";
import { memoizedSubsetSelection } from "../mechanisms/memoized_subset_selection.ts";
import { withParts } from "../parts.ts";
import { closed } from "./closed.ts";

/** All that `auto` takes for values of a closed list, with memos and without. */
export const memoized = withParts({
  types: closed.types,
  mechanisms: {
    ...closed.mechanisms,
    memoized_subset_selection: memoizedSubsetSelection,
    memoized_local_hashing: memoizedLocalHashing,
  },
});
