// Metrics with memos (`longitudinal = "memoize"`), retention among them, and RAPPOR.
import { dBitFlip } from "../mechanisms/dbitflip.ts";
import { memoizedLocalHashing } from "../mechanisms/hashed.ts";
import { memoizedRetention } from "../mechanisms/memoized_retention.ts";
import { memoizedSubsetSelection } from "../mechanisms/memoized_subset_selection.ts";
import { basicRappor, oneTimeRappor, rappor } from "../mechanisms/rappor.ts";

export default {
  mechanisms: {
    memoized_subset_selection: memoizedSubsetSelection,
    memoized_local_hashing: memoizedLocalHashing,
    memoized_retention: memoizedRetention,
    dbitflip: dBitFlip,
    basic_rappor: basicRappor,
    rappor,
    one_time_rappor: oneTimeRappor,
  },
};
