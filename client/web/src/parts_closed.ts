import { projectiveGeometry } from "./mechanisms/projective_geometry.ts";
import { subsetSelection } from "./mechanisms/subset_selection.ts";
import type { Parts } from "./registry.ts";
import { boolean, category } from "./types/closed.ts";

/** What the small bundle has: values of a closed list, each report with fresh noise. */
export const closedParts: Parts = {
  types: { boolean, category },
  mechanisms: { subset_selection: subsetSelection, projective_geometry: projectiveGeometry },
};
