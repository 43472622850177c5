// What the reference of the TypeScript SDK shows: the names that the package exports, and the types
// that these speak of.
export { MetricError } from "../../client/web/src/metric.ts";
export { RegistryError } from "../../client/web/src/registry.ts";
export type { Client, ClientStatus, Options, SentReport } from "../../client/web/src/client.ts";
export type { Account, StoredReport } from "../../client/web/src/state.ts";
export type { Source } from "../../client/web/src/bits.ts";
export type { Store } from "../../client/web/src/store.ts";
export { memoryStore } from "../../client/web/src/memory.ts";
export type { CompiledRegistry, ValueOf } from "../../client/web/src/values.ts";
export { describe, ownerPage } from "../../client/web/src/parts/owner.ts";
export type { DescribedRegistry, OwnerPageOptions } from "../../client/web/src/parts/owner.ts";
