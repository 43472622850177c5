import { type Client as ClientOf, type Options as PlainOptions, start } from "../client.ts";
import { route } from "../oblivious/transport.ts";
import { allParts } from "../parts_all.ts";
import type { CompiledRegistry } from "../values.ts";

export { RegistryError } from "../registry.ts";
export { MetricError } from "../metric.ts";
export type { ClientStatus, SentReport } from "../client.ts";
export type { Store } from "../store.ts";
export type { CompiledRegistry, ValueOf } from "../values.ts";

/** Options of a client that sends in two hops (docs/two-hops.md). */
export interface Options extends PlainOptions {
  /** The collector's address. No connection is made to it. */
  endpoint: string;
  /** The relay's address, which somebody else runs. */
  relay: string;
  /** The gateway's identity, as `deniable gateway-key show` prints it. */
  gateway: string;
}

/** Telemetry of one app in this browser, through a relay that cannot read it. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = ClientOf<D>;

export const Client = class {
  constructor(metrics: CompiledRegistry, options: Options) {
    const { endpoint, relay, gateway } = options;
    const near = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1])(?![^:/]))[^@?#\s]*$/;
    if (!near.test(relay))
      throw new TypeError("relay must be an https:// address, without a name, query or fragment");
    if (new URL(relay).host === new URL(endpoint).host)
      throw new TypeError("relay and endpoint have the same address: the relay must be another server");
    if (!/^[\w-]{87}$/.test(gateway))
      throw new TypeError("gateway must be the 87 letters that `deniable gateway-key show` prints");
    route(endpoint, relay, gateway);
    return start(metrics, options, allParts);
  }
} as unknown as new <D extends CompiledRegistry>(metrics: D, options: Options) => Client<D>;
