import { hashedProjectiveGeometry } from "../mechanisms/hashed.ts";
import { hierarchicalHistogram } from "../mechanisms/hierarchical_histogram.ts";
import { projectiveGeometry } from "../mechanisms/projective_geometry.ts";
import { slidingWindowMechanism } from "../mechanisms/sliding_window.ts";
import { withParts } from "../parts.ts";
import { number } from "../types/number.ts";
import { string } from "../types/string.ts";
import { closed } from "./closed.ts";

/** All that `auto` takes for a metric of its own without memos. */
export const full = withParts({
  types: { ...closed.types, string, number },
  mechanisms: {
    ...closed.mechanisms,
    projective_geometry: projectiveGeometry,
    hashed_projective_geometry: hashedProjectiveGeometry,
    sliding_window: slidingWindowMechanism,
    hierarchical_histogram: hierarchicalHistogram,
  },
});
