import { type JointClient, type Options, start } from "../client.ts";
import { full } from "../parts/full.ts";
import type { CompiledRegistry } from "../values.ts";

export { memoryStore } from "../memory.ts";
export { RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export type { ClientStatus, Options, SentReport } from "../client.ts";
export type { Store } from "../store.ts";
export type { CompiledRegistry, ValueOf } from "../values.ts";

/** Telemetry of one app in this browser. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = JointClient<D>;

export const Client = class {
  constructor(metrics: CompiledRegistry, options: Options) {
    return start(metrics, options, full);
  }
} as unknown as new <D extends CompiledRegistry>(metrics: D, options: Options) => Client<D>;
