export { readRegistry, RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export { windowAt } from "../windows.ts";
