import { type Odds, within } from "./exact.ts";
import { type Builder, type Mechanism, refuse } from "./mechanisms/base.ts";
import { type Declared, isValue, makeMetric, type Metric, type Type } from "./metric.ts";
import { windowEnd } from "./windows.ts";

/** That a compiled registry cannot be used; `mistakes` name each field that is wrong. */
export class RegistryError extends Error {
  constructor(readonly mistakes: readonly string[]) {
    super(
      `metrics.json: compile it anew, for this build of the SDK. Wrong: ${mistakes.join(", ")}`,
    );
    this.name = "RegistryError";
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
  readonly types: Table<Type>;
  readonly mechanisms: Table<Builder>;
}

type Table<T = unknown> = Readonly<Record<string, T>>;

// The kinds of values, as regular expressions of their JSON. Ranges are checked after that.
const TEXT = '".*\\S.*"';
const FIGURE = "[\\d.e+-]+";
const OBJECT = "{.+}";
const OR_NULL = "|null";

const METRIC = {
  description: TEXT,
  expires: '"[\\d-]{10}"',
  window: '"(day|week|month)"',
  aggregate: '"(last|first|any)"',
  answer: '"at_(close|once)"',
  sample_rate: FIGURE,
  longitudinal: '"(fresh|memoize)"',
  epsilon: FIGURE,
  lifetime_epsilon: FIGURE,
  memo_epsilon: FIGURE + OR_NULL,
  values: "null",
  other: "null",
  mechanism: TEXT,
  parameters: OBJECT,
  scheme: '"[\\da-f]{12}"',
  reveals: OBJECT,
  platform: '\\[("(web|python)"(,(?!"\\3)"(web|python)")?)?]',
  unit: "null",
};

/**
 * The registry in a parsed metrics.json, for the types and mechanisms of a bundle. No metric is
 * taken that would reveal more than it declares. Throws a RegistryError that lists all mistakes.
 */
export function readRegistry(document: unknown, { types, mechanisms }: Parts): Registry {
  const mistakes: string[] = [];
  const metrics = new Map<string, Metric>();

  /** Whether all of these hold; those that do not are mistakes. */
  const claim = (path: string, claims: Table): boolean => {
    const wrong = Object.keys(claims).filter((key) => !claims[key]);
    mistakes.push(...wrong.map((key) => path + key));
    return !wrong.length;
  };

  /** Whether a table has exactly these keys, with values of their kinds. */
  const check = (path: string, fields: Table, kinds: Table<string>): boolean =>
    claim(
      path,
      Object.fromEntries(
        [...Object.keys(kinds), ...Object.keys(fields)].map((key) => [
          key,
          // A key that is not known has no kind, and no value is of that.
          RegExp(`^(${new Map(Object.entries(kinds)).get(key) ?? "^"})$`, "s").test(
            JSON.stringify(fields[key]),
          ),
        ]),
      ),
    );

  const read = (name: string, fields: Table): void => {
    const path = `metrics.${name}.`;
    const kinds = {
      ...METRIC,
      type: `"(${Object.keys(types).join("|")})"`,
      ...types[fields.type as string]?.kinds,
    };
    if (
      !check(path, fields, kinds) ||
      !check(`${path}reveals.`, fields.reveals as Table, {
        report: FIGURE,
        memo: FIGURE + OR_NULL,
        fresh: FIGURE + OR_NULL,
      })
    )
      return;

    const metric = fields as unknown as Declared;
    const { aggregate, epsilon, lifetime_epsilon, memo_epsilon, reveals, values, other } = metric;
    const type = types[metric.type]!;
    let key = "expires: ";
    let expires: number;
    let mechanism: Mechanism;
    try {
      expires = windowEnd(metric.expires);
      key = "parameters: ";
      mechanism = (mechanisms[metric.mechanism] ?? refuse(`no ${metric.mechanism}`))(
        metric.parameters,
      );
    } catch (error) {
      claim(path, { [key + (error as Error).message]: 0 });
      return;
    }

    const places = new Map(values?.map((value, place) => [value, place]));
    const { size, odds, memoOdds, freshOdds } = mechanism;
    // What is claimed must be the exact figure, rounded up to a double: the ledger charges it.
    const tells = (odds: readonly Odds[] | undefined, claimed: number | null): boolean => {
      const holds = (epsilon: number): boolean => odds!.every((each) => within(each, epsilon));
      return odds && claimed !== null
        ? holds(claimed) && !holds(claimed * (1 - 2 ** -53))
        : !odds && claimed === null;
    };
    const right = claim(path, {
      answer: metric.answer === "at_close" || aggregate === "first",
      sample_rate: metric.sample_rate >= 1e-9 && metric.sample_rate <= 1,
      longitudinal: (metric.longitudinal === "memoize") === !!memoOdds,
      epsilon: epsilon >= reveals.report && epsilon <= 10,
      lifetime_epsilon: lifetime_epsilon >= epsilon && lifetime_epsilon <= 1e4,
      memo_epsilon: memoOdds
        ? memo_epsilon! > epsilon &&
          memo_epsilon! <= Math.min(lifetime_epsilon, 20) &&
          memo_epsilon! >= reveals.memo!
        : memo_epsilon === null,
      values:
        !values ||
        (places.size === values.length &&
          values.length > 1 &&
          values.every(isValue) &&
          (!size || size === places.size)),
      other: other === null || places.has(other),
      mechanism: type.suits(mechanism),
      "reveals.report": tells(odds, reveals.report),
      "reveals.memo": tells(memoOdds, reveals.memo),
      "reveals.fresh": tells(freshOdds, reveals.fresh),
    });
    if (right) metrics.set(name, makeMetric({ ...metric, name }, expires, places, type, mechanism));
  };

  const top = Object(document) as Table;
  const cap = top.lifetime_epsilon as number | null;
  // Another format has other keys, so to list these would mislead.
  if (
    claim("", { format: top.format === 1 }) &&
    check("", top, {
      format: "1",
      app: '"[a-z][a-z0-9_-]{0,63}"',
      lifetime_epsilon: FIGURE + OR_NULL,
      metrics: OBJECT,
    })
  ) {
    claim("", { lifetime_epsilon: cap === null || (cap > 0 && cap <= 1e4) });
    for (const [name, fields] of Object.entries(top.metrics as Table))
      if (
        claim("metrics.", {
          [name]: /^[a-z][a-z0-9_]{0,63}$/.test(name) && fields instanceof Object,
        })
      )
        read(name, fields as Table);
  }
  if (mistakes.length) throw new RegistryError(mistakes);
  return { app: top.app as string, lifetimeEpsilon: cap, metrics };
}
