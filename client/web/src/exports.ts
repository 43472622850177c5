// What each entry exports beside its client.
export { RegistryError } from "./registry.ts";
export { MetricError } from "./metric.ts";
export type { ClientStatus, SentReport } from "./client.ts";
export type { Store } from "./store.ts";
export type { CompiledRegistry, ValueOf } from "./values.ts";
