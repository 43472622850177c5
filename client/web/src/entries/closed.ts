import { type Client as ClientOf, type Options, start } from "../client.ts";
import { closedParts } from "../parts_closed.ts";
import type { CompiledRegistry } from "../values.ts";

export { RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export type { ClientStatus, Options, SentReport } from "../client.ts";
export type { Store } from "../store.ts";
export type { CompiledRegistry, ValueOf } from "../values.ts";

/** Telemetry of one app in this browser, for metrics of the types boolean and category. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = ClientOf<D>;

export const Client = class {
  constructor(metrics: CompiledRegistry, options: Options) {
    return start(metrics, options, closedParts);
  }
} as unknown as new <D extends CompiledRegistry>(metrics: D, options: Options) => Client<D>;
