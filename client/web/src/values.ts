// The types that let editors check a metric's name and its values, from the compiled registry.

/** What the compiler needs to see of a compiled registry. `deniable compile -o metrics.ts` writes
 * one whose texts it knows; in a `metrics.json` it only knows the names of the metrics. */
export interface CompiledRegistry {
  readonly metrics: Readonly<Record<string, CompiledMetric>>;
  readonly segments?: object;
  /** Parts of the SDK that come with the page, so that it loads none: `deniable compile web` adds
   * those that the registry needs. */
  readonly parts?: object;
}

interface CompiledMetric {
  readonly type: string;
  readonly mechanism?: string;
  readonly longitudinal?: string;
  readonly values: readonly string[] | null;
  readonly other: string | null;
}

/** The values that a metric takes. */
export type ValueOf<M extends CompiledMetric> = string extends M["type"]
  ? boolean | number | string
  : M["type"] extends "boolean"
    ? boolean
    : M["type"] extends "number"
      ? number
      : M["type"] extends "pair" | "retention"
        ? never
      : M extends { readonly values: readonly (infer V)[]; readonly other: null }
        ? V
        : string;
