import {
  cohortLocalHashing,
  hashedProjectiveGeometry,
  memoizedLocalHashing,
} from "./mechanisms/hashed.ts";
import { dBitFlip } from "./mechanisms/dbitflip.ts";
import { hierarchicalHistogram } from "./mechanisms/hierarchical_histogram.ts";
import { memoizedSubsetSelection } from "./mechanisms/memoized_subset_selection.ts";
import { basicRappor, oneTimeRappor, rappor, unaryEncoding } from "./mechanisms/rappor.ts";
import { slidingWindowMechanism } from "./mechanisms/sliding_window.ts";
import { closedParts } from "./parts_closed.ts";
import type { Parts } from "./registry.ts";
import { number } from "./types/number.ts";
import { string } from "./types/string.ts";

/** What the full bundle has. */
export const allParts: Parts = {
  types: { ...closedParts.types, string, number },
  mechanisms: {
    ...closedParts.mechanisms,
    unary_encoding: unaryEncoding,
    hashed_projective_geometry: hashedProjectiveGeometry,
    cohort_local_hashing: cohortLocalHashing,
    memoized_subset_selection: memoizedSubsetSelection,
    memoized_local_hashing: memoizedLocalHashing,
    basic_rappor: basicRappor,
    rappor,
    one_time_rappor: oneTimeRappor,
    sliding_window: slidingWindowMechanism,
    hierarchical_histogram: hierarchicalHistogram,
    dbitflip: dBitFlip,
  },
};
