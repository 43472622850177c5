import { subsetSelection } from "./mechanisms/subset_selection.ts";
import type { Parts } from "./registry.ts";
import { boolean, category } from "./types/closed.ts";

/** What the small bundle has: values of a closed list, each report with fresh noise. `auto` takes
 * another mechanism for lists of more than 2,000 values, which are longer than the full bundle. */
export const closedParts: Parts = {
  types: { boolean, category },
  mechanisms: { subset_selection: subsetSelection },
};
