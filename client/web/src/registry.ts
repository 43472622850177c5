import type { Metric } from "./metric.ts";

/** That a compiled registry cannot be used; `mistakes` are "field: what is wrong with it". */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  constructor(readonly mistakes: readonly string[]) {
    super(`the compiled registry cannot be used: ${mistakes.join("; ")}`);
  }
}

/** The metrics of an app, as `deniable compile` writes them. */
export interface Registry {
  readonly app: string;
  /** What all metrics together may reveal; null: there is no cap. */
  readonly lifetimeEpsilon: number | null;
  readonly metrics: ReadonlyMap<string, Metric>;
}

/** The types and mechanisms that a bundle has, by name. */
export interface Parts {
  readonly types: Readonly<Record<string, unknown>>;
  readonly mechanisms: Readonly<Record<string, unknown>>;
}

/** The registry in a parsed metrics.json. Throws a RegistryError that lists all mistakes. */
export function readRegistry(document: unknown, parts: Parts): Registry {
  throw new RegistryError([`${typeof document}: is not read yet, with ${typeof parts}`]);
}
