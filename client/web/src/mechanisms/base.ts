import type { Flags, Source } from "../bits.ts";
import type { Odds } from "../exact.ts";

/** The most cells that a tally may have. */
export const MAX_CELLS = 2 ** 23;

/** Probability one, as a threshold. */
export const ONE = 2n ** 53n;

/** What a mechanism randomizes: a place in a list, a position in a range of numbers, or a text. */
export type Item = number | string;

/** What fixes a mechanism, as metrics.json holds it. */
export type Parameters = Readonly<Record<string, unknown>>;

/** Columns of a report, packed as in JSON: an index, a sorted list, or a bitmap in base64. */
export type Columns = number | number[] | string;

/** What a device reports: a row of the tally, and columns of it. */
export interface Report {
  readonly row: number;
  readonly columns: Columns;
}

/** A randomizer with its exact odds. */
export interface Mechanism {
  /** How many values it is over; null: it takes any text. Not there: it takes numbers. */
  readonly size?: number | null;
  /** The position that stands for a number, where it takes numbers. */
  readonly position?: (value: number) => number;
  /** The bytes of a text that can be found, where texts are discovered. */
  readonly head?: (text: string) => Uint8Array;
  /** Whether it takes what a device remembers of earlier windows. */
  readonly looksBack?: boolean;
  /** What one report reveals; all of them hold. */
  readonly odds: readonly Odds[];
  /** The same for one memo, and for one report given the memos, where there are memos. */
  readonly memoOdds?: readonly Odds[];
  readonly freshOdds?: readonly Odds[];
  /**
   * Draw one report. Where there are memos, `key` is the metric's key, and `scheme` its fingerprint.
   */
  randomize(item: Item, source: Source, key: Uint8Array | null, scheme: string): Report;
}

/** Builds a mechanism from its parameters. Throws an Error that names the parameter. */
export type Builder = (parameters: Parameters) => Mechanism;

/** Stop with an error that names the parameter that is wrong. */
export function refuse(message: string): never {
  throw new Error(DEVELOPMENT ? message : "");
}

/** The named integers, from 1 to 2**53 - 1; there must be no other parameters. */
export function integers<const Names extends readonly string[]>(
  parameters: Parameters,
  ...names: Names
): { [Place in keyof Names]: number } {
  if (DEVELOPMENT)
    for (const name in parameters) if (!names.includes(name)) refuse(`${name} is unknown`);
  return names.map((name) => {
    const value = parameters[name] as number;
    if (!Number.isSafeInteger(value) || value < 1) refuse(`${name} must be an integer from 1 on`);
    return value;
  }) as { [Place in keyof Names]: number };
}

/** Limits that keep tallies small; a wrong one reveals nothing. */
export function limit(name: string, value: number, lowest: number, highest = MAX_CELLS): void {
  if (DEVELOPMENT && (value < lowest || value > highest))
    refuse(`${name} must be from ${lowest} to ${highest}`);
}

/**
 * The odds of a report that is one of `part` outputs with chance threshold / 2**53, and otherwise
 * one of the others of `whole`. The threshold must favour the part.
 */
export function favouring(threshold: number, part: number, whole: number): Odds {
  const chance = BigInt(threshold);
  const inside = BigInt(part);
  const all = BigInt(whole);
  if (chance * all <= inside * ONE) refuse("threshold is too low: epsilon must be positive");
  return [chance * (all - inside), (ONE - chance) * inside, 1];
}

/** A set of columns as the sorted list of their numbers. */
export function listed(flags: Flags): Columns {
  return [...flags.keys()].filter((column) => flags[column]);
}

/** A set of columns as a bitmap: column j at bit j % 8 of byte j // 8, in URL-safe base64. */
export function bitmap(flags: Flags): Columns {
  let bytes = "";
  for (let at = 0; at < flags.length; at += 8) {
    let byte = 0;
    for (let bit = 0; bit < 8; bit++) byte |= flags[at + bit]! << bit;
    bytes += String.fromCharCode(byte);
  }
  return btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
}
