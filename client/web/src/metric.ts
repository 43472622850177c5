import { below, type Source } from "./bits.ts";
import { type Item, type Mechanism, type Parameters, refuse, type Report } from "./mechanisms/base.ts";
import type { Segments, Told } from "./segments.ts";

export type WindowKind = "day" | "week" | "month";
export type Aggregate = "last" | "first" | "any" | "max" | "min" | "sum" | "count" | "mean";

/** What `Client.active` records in place of a value. */
export const ACTIVE = {};

/** That a metric is not declared, or cannot take a recorded value. The message does not repeat the
 * value. */
export class MetricError extends Error {
  constructor(
    readonly metric: string,
    message: string,
  ) {
    super(DEVELOPMENT ? `metric ${metric} ${message}` : metric);
    // Released builds throw none.
    if (DEVELOPMENT) this.name = "MetricError";
  }
}

/** What metrics.json declares of a metric, in its own names. */
export interface Declared {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  readonly expires: string;
  readonly window: WindowKind;
  readonly aggregate: Aggregate;
  readonly answer: "at_close" | "at_once";
  readonly sample_rate: number;
  /** If a number, the device takes part in one of so many windows: it draws one of so many groups
   * once, and the groups take turns. */
  readonly one_in: number | null;
  readonly longitudinal: "fresh" | "memoize";
  readonly epsilon: number;
  readonly lifetime_epsilon: number;
  readonly memo_epsilon: number | null;
  readonly values: readonly string[] | null;
  readonly other: string | null;
  readonly mechanism: string;
  readonly parameters: Parameters;
  /** The fingerprint of its scheme, which travels in each report. */
  readonly scheme: string;
  /** The epsilons in force, rounded up to doubles; the ledger charges them. */
  readonly reveals: Readonly<{ report: number; memo: number | null; fresh: number | null }>;
  readonly platform: readonly string[];
  readonly unit: string | null;
  /** The names of its segments, and the rows of its mechanism; only where the registry has segments. */
  readonly segments?: readonly string[];
  readonly rows?: number;
  /** Of a pair: the names of its two metrics, where their numbers are cut, and whether these are
   * not asked by themselves ("marginals"). */
  readonly of?: readonly string[];
  readonly bins?: Readonly<Record<string, readonly number[]>>;
  readonly forget?: string | null;
  /** Of a discovery: patterns of texts that are never reported. */
  readonly deny?: readonly string[];
  readonly minimum_share?: number;
}

/** One declared question, and what a recorded value means to it. */
export interface Metric extends Omit<Declared, "expires"> {
  /** The values of its segments for the record or window in hand; undefined if one is not known. */
  readonly told?: Told | undefined;

  /** POSIX time in seconds at which its last day has ended. */
  readonly expires: number;

  /** The text that a recorded value waits as. Throws a MetricError for what it cannot take. */
  normalize(value: unknown): string;
  /** Whether a normalized text stands for a value that is not declared. */
  standsIn(text: string, value: unknown): boolean;
  /** A window's value after its first record. */
  begin(text: string): string;
  /** A window's value after one more record, the `records`-th, from 2 on. */
  merge(value: string, text: string, records: number, source: Source): string;
  /**
   * One report of a normalized text; null if that is no value any more, as the registry has
   * changed since. `key` is the metric's memo key, for a metric with memos.
   */
  report(text: string, source: Source, key: Uint8Array | null): Report | null;
}

/** The metrics of an app, as `deniable compile` writes them. */
export interface Registry {
  readonly app: string;
  /** What all metrics together may reveal; null: there is no cap. */
  readonly lifetimeEpsilon: number | null;
  readonly metrics: ReadonlyMap<string, Metric>;
  /** The declared segments. */
  readonly segments: Segments;
}

/** One recorded value. It exists only in memory and in the open window. */
export interface RecordedValue {
  readonly metric: Metric;
  readonly text: string;
  readonly window: string;
}

/** What the values of a metric are. */
export interface Type {
  /** The type for one metric, where its values depend on more than a list. */
  made?(declared: Declared, mechanism: Mechanism): Type;
  /** The text that a recorded value waits as. Throws what the MetricError shall say. */
  normalize(value: unknown, other: string | null, places: Places): string;
  /** What the mechanism randomizes in place of a normalized text; undefined if that is no value. */
  item(text: string, mechanism: Mechanism, other: string | null, places: Places): Item | undefined;
  /** Whether values of this type can be reported through the mechanism. */
  suits(mechanism: Mechanism): boolean;
  /** `Metric.begin` and `Metric.merge`, for the aggregates that only this type has. */
  begin?(text: string, aggregate: Aggregate): string;
  merge?(value: string, text: string, records: number, aggregate: Aggregate): string;
}

/** The place of each listed value, from 0. */
export type Places = ReadonlyMap<string, number>;

/** The longest value in UTF-8. */
const MAX_BYTES = 1024;

/** Texts with more UTF-16 units are too long for a value in any form. */
const HOPELESS = 4 * MAX_BYTES;

/** The text in Unicode normal form C; of what cannot be a value, nothing. */
export function normalForm(value: unknown): string {
  if (typeof value !== "string") return refuse("takes text");
  return value.length > HOPELESS ? "" : value.normalize();
}

/**
 * Whether a text may be a value: in normal form, not blank, at most 1,024 bytes, without control
 * characters and halves of surrogate pairs. U+FEFF is white space to JavaScript alone.
 */
export function isValue(text: unknown): boolean {
  return (
    typeof text === "string" &&
    text === normalForm(text) &&
    /[\S\ufeff]/.test(text) &&
    !/[\p{Cc}\p{Cs}]/u.test(text) &&
    new TextEncoder().encode(text).length <= MAX_BYTES
  );
}

export function makeMetric(
  declared: Declared,
  expires: number,
  places: Places,
  type: Type,
  mechanism: Mechanism,
): Metric {
  const { name, aggregate, other, scheme } = declared;
  return {
    ...declared,
    expires,
    normalize(value) {
      // Elsewhere nobody reads the message.
      if (!DEVELOPMENT) return type.normalize(value, other, places);
      try {
        return type.normalize(value, other, places);
      } catch (error) {
        throw new MetricError(name, (error as Error).message);
      }
    },
    standsIn: (text, value) => text === other && !places.has(normalForm(value)),
    begin: (text) => type.begin?.(text, aggregate) ?? text,
    merge(value, text, records, source) {
      // Reservoir sampling: each record is kept with chance 1 / records.
      if (aggregate === "last" || (aggregate === "any" && !below(records, source))) return text;
      return type.merge?.(value, text, records, aggregate) ?? value;
    },
    report(text, source, key) {
      const item = type.item(text, mechanism, other, places);
      return item === undefined ? null : mechanism.randomize(item, source, key, scheme);
    },
  };
}
