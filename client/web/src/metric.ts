import type { Source } from "./bits.ts";

export type WindowKind = "day" | "week" | "month";
export type Aggregate = "last" | "first" | "any" | "max" | "min" | "sum" | "count" | "mean";

/** Columns of a report, packed as in JSON: an index, a sorted list, or a bitmap in base64. */
export type Columns = number | number[] | string;

export interface Report {
  readonly row: number;
  readonly columns: Columns;
}

/** That a metric cannot take a recorded value. The message does not repeat the value. */
export class MetricError extends Error {
  override readonly name = "MetricError";
  constructor(
    readonly metric: string,
    message: string,
  ) {
    super(`metric ${metric} ${message}`);
  }
}

/** One declared question, and what a recorded value means to it. */
export interface Metric {
  readonly name: string;
  readonly type: string;
  readonly description: string;
  /** POSIX time in seconds at which its last day has ended. */
  readonly expires: number;
  readonly window: WindowKind;
  readonly aggregate: Aggregate;
  readonly answer: "at_close" | "at_once";
  readonly sampleRate: number;
  readonly longitudinal: "fresh" | "memoize";
  readonly epsilon: number;
  readonly lifetimeEpsilon: number;
  readonly memoEpsilon: number | null;
  readonly values: readonly string[] | null;
  readonly other: string | null;
  readonly mechanism: string;
  /** The fingerprint of its scheme, which travels in each report. */
  readonly scheme: string;
  /** The epsilons in force, rounded up to doubles; the ledger charges them. */
  readonly reveals: Readonly<{ report: number; memo: number | null; fresh: number | null }>;
  readonly platform: readonly string[];
  readonly unit: string | null;

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
