import { allParts } from "./parts_all.ts";
import type { Parts } from "./registry.ts";
import { pair } from "./types/pair.ts";

/** What the bundle with segments and pairs has. */
export const jointParts: Parts = { ...allParts, types: { ...allParts.types, pair } };
