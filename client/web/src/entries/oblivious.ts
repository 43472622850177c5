import { type JointClient, type Options as PlainOptions, start } from "../client.ts";
import { jointParts } from "../parts_joint.ts";
import type { CompiledRegistry } from "../values.ts";

export { RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export type { ClientStatus, SentReport } from "../client.ts";
export type { Store } from "../store.ts";
export type { CompiledRegistry, ValueOf } from "../values.ts";

/** Options of a client that sends in two hops (docs/how-to/two-hops.md). */
export interface Options extends PlainOptions {
  /** The collector's address. No connection is made to it. */
  endpoint: string;
  /** The relay's address, which somebody else runs. */
  relay: string;
  /** The gateway's identity, as `deniable relay key show` prints it. */
  gateway: string;
}

/** Telemetry of one app in this browser, through a relay that cannot read it. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = JointClient<D>;

export const Client = class {
  constructor(metrics: CompiledRegistry, options: Options) {
    return start(metrics, options, jointParts);
  }
} as unknown as new <D extends CompiledRegistry>(metrics: D, options: Options) => Client<D>;
