import { closedParts } from "./parts_closed.ts";
import type { Parts } from "./registry.ts";

/** What the full bundle has. */
export const allParts: Parts = {
  types: { ...closedParts.types },
  mechanisms: { ...closedParts.mechanisms },
};
