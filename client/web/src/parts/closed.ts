import { subsetSelection } from "../mechanisms/subset_selection.ts";
import type { Entry } from "../parts.ts";
import { boolean, category } from "../types/closed.ts";

/** What the closed entry has: values of a closed list, each report with fresh noise. `auto` takes
 * another mechanism for lists of more than 2,000 values, which are longer than the full entry. */
export const closed: Entry = {
  types: { boolean, category },
  mechanisms: { subset_selection: subsetSelection },
};
