// Segments: public groups of devices. A report tells them in clear, as part of its row.

/** A declared segment. */
export interface Segment {
  readonly values: readonly string[];
  /** Stands for every text that is not declared, and for what a page does not tell. */
  readonly other: string | null;
}

export type Segments = ReadonlyMap<string, Segment>;

/** What a page told of its segments, by their names. */
export type Told = Readonly<Record<string, unknown>>;

/** The declared value that a page's value stands for; undefined if there is none. */
export function valueIn({ values, other }: Segment, value: unknown): string | undefined {
  const text = typeof value === "string" ? value.normalize() : "";
  return values.includes(text) ? text : (other ?? undefined);
}

/** The value of each segment of a metric, by its name; undefined if one is not known. */
export function resolve(names: readonly string[], segments: Segments, told: Told): Told | undefined {
  const found = names.map((name) => [name, valueIn(segments.get(name)!, told[name])] as const);
  return found.some(([, value]) => value === undefined) ? undefined : Object.fromEntries(found);
}

/** The number of a combination of segments, from 0: the last segment counts fastest. NaN if one is
 * not known. */
export function placeOf(names: readonly string[], segments: Segments, told: Told): number {
  return names.reduce((place, name) => {
    const segment = segments.get(name)!;
    const value = valueIn(segment, told[name]);
    return value === undefined ? NaN : place * segment.values.length + segment.values.indexOf(value);
  }, 0);
}
