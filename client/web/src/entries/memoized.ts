import { classOf, type JointClient } from "../client.ts";
import { memoized } from "../parts/memoized.ts";
import type { CompiledRegistry } from "../values.ts";

export { memoryStore } from "../memory.ts";
export * from "../exports.ts";
export type { Options } from "../client.ts";

/** Telemetry of one app in this browser, for metrics of the types boolean and category, with memos. */
export type Client<D extends CompiledRegistry = CompiledRegistry> = JointClient<D>;

export const Client = classOf(memoized);
