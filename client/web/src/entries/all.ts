import { readRegistry as read, type Registry } from "../registry.ts";
import { allParts } from "../parts_all.ts";

export { RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export { windowAt } from "../windows.ts";

export const readRegistry = (document: unknown): Registry => read(document, allParts);
