import { classOf, type JointClient } from "../client.ts";
import { full } from "../parts/full.ts";
import type { CompiledRegistry } from "../values.ts";

export { memoryStore } from "../memory.ts";
export * from "../exports.ts";
export type { Options } from "../client.ts";

/** Telemetry of one app in this browser. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = JointClient<D>;

export const Client = classOf(full);
