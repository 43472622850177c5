import { type Odds, within } from "./exact.ts";
import type { Builder, Mechanism, Parameters } from "./mechanisms/base.ts";
import { type Declared, isValue, makeMetric, type Metric, type Type } from "./metric.ts";
import { windowEnd } from "./windows.ts";

/** That a compiled registry cannot be used; `mistakes` name each field that is wrong. */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  constructor(readonly mistakes: readonly string[]) {
    super(
      `metrics.json: compile it with this version of deniable. Wrong are ${mistakes.join(", ")}`,
    );
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

/** Whether a value is of a key's kind. */
type Check = (value: unknown) => boolean;

const FORMAT = 1;

const matches =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value);

const text = matches(/\S/);

/** A number above zero, or from `lowest` on. */
const number =
  (highest: number, lowest = Number.MIN_VALUE): Check =>
  (value) =>
    typeof value === "number" && value >= lowest && value <= highest;

/** A list of what is right, each once. */
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && new Set(value).size === value.length && value.every(check);

const table: Check = (value) => value instanceof Object && !Array.isArray(value);

const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

const figure = orNull(number(Number.MAX_VALUE));

const REVEALS: Table<Check> = { report: figure, memo: figure, fresh: figure };

const METRIC: Table<Check> = {
  type: text,
  description: text,
  expires: matches(/^.{10}$/),
  window: matches(/^(day|week|month)$/),
  aggregate: text,
  answer: matches(/^at_(close|once)$/),
  sample_rate: number(1, 1e-9),
  longitudinal: matches(/^(fresh|memoize)$/),
  epsilon: number(10),
  lifetime_epsilon: number(1e4),
  memo_epsilon: orNull(number(20)),
  values: orNull(listOf((value) => text(value) && isValue(value as string))),
  other: orNull(text),
  mechanism: text,
  parameters: table,
  scheme: matches(/^[0-9a-f]{12}$/),
  reveals: table,
  platform: listOf(matches(/^(python|web)$/)),
  unit: orNull(text),
};

const TOP: Table<Check> = {
  format: (value) => value === FORMAT,
  app: matches(/^[a-z][a-z0-9_-]{0,63}$/),
  lifetime_epsilon: orNull(number(1e4)),
  metrics: table,
};

/**
 * The registry in a parsed metrics.json, for the types and mechanisms of a bundle. No metric is
 * taken that would reveal more than it declares. Throws a RegistryError that lists all mistakes.
 */
export function readRegistry(document: unknown, { types, mechanisms }: Parts): Registry {
  const mistakes: string[] = [];
  const metrics = new Map<string, Metric>();

  const claim = (holds: unknown, path: string): void => {
    if (!holds) mistakes.push(path.replace(/\.$/, ""));
  };

  /** Whether a table has exactly these keys, with values of their kinds. */
  const check = (value: unknown, checks: Table<Check>, path: string): boolean => {
    const before = mistakes.length;
    if (table(value))
      for (const key of new Set([...Object.keys(checks), ...Object.keys(value as Table)]))
        claim(Object.keys(checks).includes(key) && checks[key]!((value as Table)[key]), path + key);
    else claim(0, path);
    return before === mistakes.length;
  };

  const read = (name: string, fields: Table): void => {
    const path = `metrics.${name}.`;
    const before = mistakes.length;
    claim(/^[a-z][a-z0-9_]{0,63}$/.test(name), path);
    if (!check(fields, METRIC, path) || !check(fields.reveals, REVEALS, path + "reveals.")) return;

    const declared = { name } as Record<string, unknown>;
    for (const key in fields)
      declared[key.replace(/_(.)/, (_, letter: string) => letter.toUpperCase())] = fields[key];
    const metric = declared as unknown as Declared;
    const { aggregate, epsilon, lifetimeEpsilon, memoEpsilon, reveals, values, other } = metric;
    // By own keys alone: "constructor" names no type.
    const type = new Map(Object.entries(types)).get(metric.type);
    const build = new Map(Object.entries(mechanisms)).get(metric.mechanism);
    claim(type, `${path}type: this build of the SDK has no ${metric.type}`);
    claim(build, `${path}parameters: this build of the SDK has no ${metric.mechanism}`);
    if (!type || !build) return;
    let mechanism: Mechanism;
    let trying = "expires: ";
    try {
      declared.expires = windowEnd(fields.expires as string);
      trying = "parameters: ";
      mechanism = build(fields.parameters as Parameters);
    } catch (error) {
      claim(0, path + trying + (error as Error).message);
      return;
    }

    const places = new Map(values?.map((value, place) => [value, place]));
    const { odds, memoOdds, freshOdds } = mechanism;
    for (const key of ["values", "other", "unit"])
      claim(fields[key] === null || type.takes.includes(key), path + key);
    claim(places.size > 1 || !type.takes.includes("values"), path + "values");
    claim(other === null || places.has(other), path + "other");
    claim(type.aggregates.includes(aggregate), path + "aggregate");
    claim(metric.answer === "at_close" || aggregate === "first", path + "answer");
    claim(
      type.suits(mechanism, places),
      path + (values && mechanism.size ? "values" : "mechanism"),
    );
    claim((metric.longitudinal === "memoize") === !!memoOdds, path + "longitudinal");
    claim(epsilon >= reveals.report, path + "epsilon");
    claim(lifetimeEpsilon >= epsilon, path + "lifetime_epsilon");
    claim(
      memoOdds
        ? memoEpsilon! > epsilon && memoEpsilon! <= lifetimeEpsilon && memoEpsilon! >= reveals.memo!
        : memoEpsilon === null,
      path + "memo_epsilon",
    );
    // What is claimed must be the exact figure, rounded up to a double: the ledger charges it.
    const tells = (odds: readonly Odds[] | undefined, key: keyof typeof reveals): void => {
      const holds = (epsilon: number): boolean => odds!.every((each) => within(each, epsilon));
      const claimed = reveals[key];
      claim(
        odds && claimed !== null
          ? holds(claimed) && !holds(claimed * (1 - 2 ** -53))
          : !odds && claimed === null,
        `${path}reveals.${key}`,
      );
    };
    tells(odds, "report");
    tells(memoOdds, "memo");
    tells(freshOdds, "fresh");
    if (before === mistakes.length) metrics.set(name, makeMetric(metric, places, type, mechanism));
  };

  const top = document as Table;
  // Another format has other keys, so to list these would mislead.
  if (table(top) && !TOP.format!(top.format)) claim(0, "format");
  else if (check(top, TOP, "")) {
    for (const [name, fields] of Object.entries(top.metrics as Table<Table>)) read(name, fields);
    claim(metrics.size || mistakes.length, "metrics");
  }
  if (mistakes.length) throw new RegistryError(mistakes);
  return {
    app: top.app as string,
    lifetimeEpsilon: top.lifetime_epsilon as number | null,
    metrics,
  };
}
