import { hashedProjectiveGeometry } from "../mechanisms/hashed.ts";
import { hierarchicalHistogram } from "../mechanisms/hierarchical_histogram.ts";
import { projectiveGeometry } from "../mechanisms/projective_geometry.ts";
import { slidingWindowMechanism } from "../mechanisms/sliding_window.ts";
import { assembled, type Entry } from "../parts.ts";
import joint from "./joint.ts";
import memos from "./memos.ts";
import oblivious from "./oblivious.ts";
import { number } from "../types/number.ts";
import { string } from "../types/string.ts";
import { closed } from "./closed.ts";

/** All that `auto` takes for a metric of its own without memos. */
const common: Entry = {
  types: { ...closed.types, string, number },
  mechanisms: {
    ...closed.mechanisms,
    projective_geometry: projectiveGeometry,
    hashed_projective_geometry: hashedProjectiveGeometry,
    sliding_window: slidingWindowMechanism,
    hierarchical_histogram: hierarchicalHistogram,
  },
};

/** Development builds have all parts at once, so that they can name a mistake in the call that makes
 * it. */
export const full: Entry = DEVELOPMENT
  ? [joint, memos, oblivious].reduce<Entry>(assembled, common)
  : {
      ...common,
      load: {
        joint: () => import("./joint.ts"),
        memos: () => import("./memos.ts"),
        oblivious: () => import("./oblivious.ts"),
      },
    };
