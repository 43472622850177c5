import { hashedProjectiveGeometry } from "../mechanisms/hashed.ts";
import { projectiveGeometry } from "../mechanisms/projective_geometry.ts";
import { assembled, type Entry } from "../parts.ts";
import joint from "./joint.ts";
import memos from "./memos.ts";
import numbers from "./numbers.ts";
import oblivious from "./oblivious.ts";
import rappor from "./rappor.ts";
import retention from "./retention.ts";
import { number } from "../types/number.ts";
import { string } from "../types/string.ts";
import { closed } from "./closed.ts";

/** What most registries need: all types of values, and what `auto` takes for texts without memos. */
const common: Entry = {
  types: { ...closed.types, string, number },
  mechanisms: {
    ...closed.mechanisms,
    projective_geometry: projectiveGeometry,
    hashed_projective_geometry: hashedProjectiveGeometry,
  },
};

/** Development builds have all parts at once, so that they can name a mistake in the call that makes
 * it. */
export const full: Entry = DEVELOPMENT
  ? [joint, memos, numbers, oblivious, rappor, retention].reduce<Entry>(assembled, common)
  : {
      ...common,
      load: {
        joint: () => import("./joint.ts"),
        memos: () => import("./memos.ts"),
        numbers: () => import("./numbers.ts"),
        oblivious: () => import("./oblivious.ts"),
        rappor: () => import("./rappor.ts"),
        retention: () => import("./retention.ts"),
      },
    };
