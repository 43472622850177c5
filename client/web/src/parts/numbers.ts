// Numbers without memos.
import { hierarchicalHistogram } from "../mechanisms/hierarchical_histogram.ts";
import { slidingWindowMechanism } from "../mechanisms/sliding_window.ts";
import type { Parts } from "../parts.ts";

export { receive } from "../shared.ts";

export default {
  mechanisms: {
    sliding_window: slidingWindowMechanism,
    hierarchical_histogram: hierarchicalHistogram,
  },
} satisfies Partial<Parts>;
