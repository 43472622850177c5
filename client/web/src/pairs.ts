// Pairs: the device joins the values of two metrics when their window closes, and answers once.
import type { Declared, Metric, RecordedValue, Registry } from "./metric.ts";
import { numberText, readNumber } from "./number_text.ts";
import { windowStart } from "./windows.ts";

/** Where a pair cuts the numbers of its metrics. */
type Bins = Readonly<Record<string, readonly number[]>>;

/** The most cells of a pair, as in Python. */
const MAX_PAIR_CELLS = 900;

/** The pairs of a metric, in the order of the registry. */
const pairsOf = ({ metrics }: Registry, name: string): Metric[] =>
  [...metrics.values()].filter(({ of }) => of?.includes(name));

/** Whether a metric is not asked by itself, because a pair gives its shares. */
export const isUnasked = (registry: Registry, { name }: Metric): boolean =>
  pairsOf(registry, name).some(({ forget }) => forget);

/** The pairs of a record that have not expired when its window begins. */
export const askedPairs = (registry: Registry, { name }: Metric, window: string): Metric[] =>
  pairsOf(registry, name).filter(({ expires }) => windowStart(window) < expires);

/**
 * The records, and in front of each its metric and the pairs of that, without a text: there the
 * device decides whether they take part in the window. All of them draw before the value is merged,
 * so that whether one takes part says nothing about another.
 */
export const withPairs = (
  records: readonly RecordedValue[],
  registry: Registry,
): (Omit<RecordedValue, "text"> & { text?: string })[] =>
  records.flatMap((record) => {
    const { metric, window } = record;
    const takers = [metric, ...askedPairs(registry, metric, window)];
    return [...takers.map((each) => ({ metric: each, window })), record];
  });

/** How many values a metric has in a pair, which cuts numbers at these edges; 0 if it has no list. */
export const sizeOf = ({ type, values }: Metric, edges?: readonly number[]): number =>
  (edges ? type === "number" && edges.length + 1 : values?.length) || 0;

/**
 * Which fields of a pair are right, given the metrics that are read before it. Released builds check
 * what a report depends on.
 */
export function checkPair(
  { of, bins, window, values, ...rest }: Declared,
  expires: number,
  metrics: ReadonlyMap<string, Metric>,
): Readonly<Record<string, boolean>> {
  const parts = of!.map((name) => metrics.get(name));
  const [one, two] = parts;
  if (!one || !two || parts[2] || one === two) return { of: false };
  const size = sizeOf(one, bins![one.name]) * sizeOf(two, bins![two.name]);
  const suits = [one, two].every(
    (part) =>
      part.window === window && part.answer === "at_close" && part.longitudinal === "fresh",
  );
  const fine = suits && size > 0 && size === values!.length;
  if (!DEVELOPMENT || !fine) return { of: fine };
  const shared = one.platform.some((each) => two.platform.includes(each));
  return {
    of:
      size <= MAX_PAIR_CELLS &&
      (shared || !one.platform.length || !two.platform.length) &&
      [one, two].every((part) => part.expires >= expires && !(rest.forget && part.segments?.length)),
    bins: Object.entries(bins!).every(([name, edges]) => of!.includes(name) && isRising(edges)),
    values:
      JSON.stringify(values) ===
      JSON.stringify(
        textsOf(one, bins!).flatMap((first) =>
          textsOf(two, bins!).map((second) => `${one.name}=${first} × ${two.name}=${second}`),
        ),
      ),
  };
}

const isRising = (edges: readonly number[]): boolean =>
  edges.length > 0 && edges.every((edge, at) => Number.isFinite(edge) && (!at || edge > edges[at - 1]!));

/** The values of a metric as the cells name them. */
function textsOf({ name, values }: Metric, bins: Bins): readonly string[] {
  const edges = bins[name]?.map(numberText);
  if (!edges) return values!;
  const between = edges.slice(1).map((edge, at) => `${edges[at]!} to ${edge}`);
  return [`below ${edges[0]!}`, ...between, `${edges[edges.length - 1]!} or more`];
}

/** The cell of the values that two metrics have; undefined if one has none, or it is none any more. */
export function join(
  { of, bins }: Metric,
  { metrics }: Registry,
  valueOf: (name: string) => string | undefined,
): string | undefined {
  let cell = 0;
  for (const name of of!) {
    const metric = metrics.get(name)!;
    const edges = bins![name];
    const text = valueOf(name);
    const values = metric.values!;
    let place = -1;
    if (text !== undefined) {
      if (edges) {
        const number = readNumber(text);
        // A number on an edge belongs to the bin above it.
        if (number !== undefined) place = edges.filter((edge) => edge <= number).length;
      } else place = values.indexOf(values.includes(text) ? text : metric.other!);
    }
    if (place < 0) return undefined;
    cell = cell * sizeOf(metric, edges) + place;
  }
  return String(cell);
}
