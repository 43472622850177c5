import { type JointClient, type Options, start } from "../client.ts";
import { allParts } from "../parts_all.ts";
import type { CompiledRegistry } from "../values.ts";

export { RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export type { ClientStatus, Options, SentReport } from "../client.ts";
export type { Store } from "../store.ts";
export type { CompiledRegistry, ValueOf } from "../values.ts";

/** Telemetry of one app in this browser, which tells its segments. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = JointClient<D>;

export const Client = class {
  constructor(metrics: CompiledRegistry, options: Options) {
    return start(metrics, options, allParts);
  }
} as unknown as new <D extends CompiledRegistry>(metrics: D, options: Options) => Client<D>;
