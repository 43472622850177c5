import { type Client as ClientOf, type ClosedOptions, start } from "../client.ts";
import { closed } from "../parts/closed.ts";
import type { CompiledRegistry } from "../values.ts";

export * from "../exports.ts";
export type { ClosedOptions as Options } from "../client.ts";

/** Telemetry of one app in this browser, for metrics of the types boolean and category. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = ClientOf<D>;

export const Client = class {
  constructor(metrics: CompiledRegistry, options: ClosedOptions) {
    return start(metrics, options, closed);
  }
} as unknown as new <D extends CompiledRegistry>(metrics: D, options: ClosedOptions) => Client<D>;
