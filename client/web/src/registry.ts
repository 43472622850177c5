import { type Odds, within } from "./exact.ts";
import type { Builder, Mechanism, Parameters } from "./mechanisms/base.ts";
import { type Declared, makeMetric, type Metric, normalForm, type Type } from "./metric.ts";
import { windowEnd } from "./windows.ts";

/** That a compiled registry cannot be used; `mistakes` are "field: what is wrong with it". */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  constructor(readonly mistakes: readonly string[]) {
    super(`metrics.json cannot be used: ${mistakes.join("; ")}`);
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
  readonly types: Readonly<Record<string, Type>>;
  readonly mechanisms: Readonly<Record<string, Builder>>;
}

type Table = Readonly<Record<string, unknown>>;

/** True, or what is wrong with a value. */
type Check = (value: unknown) => string | boolean;

const FORMAT = 1;

const matches =
  (pattern: RegExp, what: string): Check =>
  (value) =>
    (typeof value === "string" && pattern.test(value)) || `must be ${what}`;

const text = matches(/\S/, "a text");

const number =
  (lowest: number, highest: number): Check =>
  (value) =>
    (typeof value === "number" && value >= lowest && value <= highest) ||
    `must be a number from ${lowest} to ${highest}`;

/** Above zero: no double is smaller. */
const positive = (highest: number): Check => number(Number.MIN_VALUE, highest);

const oneOf =
  (...choices: readonly unknown[]): Check =>
  (value) =>
    choices.includes(value) || `must be one of ${choices.join(", ")}`;

const listOf =
  (check: Check): Check =>
  (value) =>
    (Array.isArray(value) && new Set(value).size === value.length && value.every((each) => check(each) === true)) ||
    "must be a list of texts, each once";

const table: Check = (value) =>
  (value instanceof Object && !Array.isArray(value)) || "must be an object";

const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);

const figure = orNull(number(0, Number.MAX_VALUE));

const REVEALS = { report: number(0, 10), memo: figure, fresh: figure };

const METRIC = {
  type: text,
  description: text,
  expires: matches(/^\d{4}-\d\d-\d\d$/, "a day"),
  window: oneOf("day", "week", "month"),
  aggregate: text,
  answer: oneOf("at_close", "at_once"),
  sample_rate: number(1e-9, 1),
  longitudinal: oneOf("fresh", "memoize"),
  epsilon: positive(10),
  lifetime_epsilon: positive(1e4),
  memo_epsilon: orNull(positive(20)),
  // A value of the list is text that is in normal form already.
  values: orNull(listOf((value) => typeof value === "string" && normalForm(value) === value && !!value)),
  other: orNull(text),
  mechanism: text,
  parameters: table,
  scheme: matches(/^[0-9a-f]{12}$/, "12 hexadecimal digits"),
  reveals: table,
  platform: listOf(oneOf("python", "web")),
  unit: orNull(text),
};

const TOP = {
  format: oneOf(FORMAT),
  app: matches(/^[a-z][a-z0-9_-]{0,63}$/, "the name of an app"),
  lifetime_epsilon: orNull(positive(1e4)),
  metrics: (value: unknown) => (table(value) === true && Object.keys(value as Table).length > 0) || "must hold a metric",
};

/**
 * The registry in a parsed metrics.json, for the types and mechanisms of a bundle. No metric is
 * taken that would reveal more than it declares. Throws a RegistryError that lists all mistakes.
 */
export function readRegistry(document: unknown, { types, mechanisms }: Parts): Registry {
  const mistakes: string[] = [];
  const metrics = new Map<string, Metric>();

  const claim = (path: string, holds: string | boolean, mistake = "is out of range"): void => {
    if (holds !== true) mistakes.push(`${path}: ${holds || mistake}`);
  };

  /** Whether a table has exactly these keys, with values of their kinds. */
  const check = (path: string, value: unknown, checks: Readonly<Record<string, Check>>): boolean => {
    const before = mistakes.length;
    claim(path, table(value));
    if (before < mistakes.length) return false;
    const fields = value as Table;
    const within = path && `${path}.`;
    for (const key of Object.keys(fields)) claim(within + key, Object.keys(checks).includes(key), "is unknown");
    for (const key in checks)
      claim(within + key, key in fields ? checks[key]!(fields[key]) : "is missing");
    return before === mistakes.length;
  };

  const read = (name: string, fields: Table): void => {
    const path = `metrics.${name}`;
    const before = mistakes.length;
    claim(path, /^[a-z][a-z0-9_]{0,63}$/.test(name), "is no name of a metric");
    if (!check(path, fields, METRIC) || !check(`${path}.reveals`, fields.reveals, REVEALS)) return;

    const declared = { name } as Record<string, unknown>;
    for (const key in fields)
      declared[key.replace(/_(.)/, (_, letter: string) => letter.toUpperCase())] = fields[key];
    const metric = declared as unknown as Declared;
    const { epsilon, lifetimeEpsilon, memoEpsilon, reveals, values, other } = metric;

    const here = (key: string, holds: boolean, mistake: string): void => claim(`${path}.${key}`, holds, mistake);
    const type = get(types, metric.type);
    const build = get(mechanisms, metric.mechanism);
    here("type", !!type, `is ${metric.type}, which this build of the SDK does not have`);
    here("mechanism", !!build, `is ${metric.mechanism}, which this build of the SDK does not have`);
    if (!type || !build) return;
    let mechanism: Mechanism;
    try {
      declared.expires = windowEnd(fields.expires as string);
      mechanism = build(fields.parameters as Parameters);
    } catch (error) {
      here(declared.expires === fields.expires ? "expires" : "parameters", false, (error as Error).message);
      return;
    }

    const places = new Map(values?.map((value, place) => [value, place]));
    here("values", type.closed === places.size > 1, `must be ${type.closed ? "a list" : "null"}`);
    here("other", other === null || places.has(other), "is none of the values");
    here("aggregate", type.aggregates.includes(metric.aggregate), `must be one of ${type.aggregates.join(", ")}`);
    here("answer", metric.answer === "at_close" || metric.aggregate === "first", "is at_once, which needs the aggregate first");
    const key = type.closed && mechanism.size ? "values" : "mechanism";
    here(key, type.suits(mechanism, places), "does not fit: mechanism and values are for different lists");

    // What is claimed must be the exact figure, rounded up: the ledger charges it.
    const { odds, memoOdds, freshOdds } = mechanism;
    const tells = (key: keyof typeof reveals, odds: readonly Odds[] | undefined): void => {
      const claimed = reveals[key];
      here(
        `reveals.${key}`,
        odds && claimed !== null
          ? odds.every((each) => within(each, claimed)) && !odds.every((each) => within(each, claimed * (1 - 2 ** -53)))
          : !odds && claimed === null,
        "is not what the parameters reveal",
      );
    };
    tells("report", odds);
    tells("memo", memoOdds);
    tells("fresh", freshOdds);
    here("epsilon", epsilon >= reveals.report, `is below what a report reveals, ${reveals.report}`);
    here("lifetime_epsilon", lifetimeEpsilon >= epsilon, "is below epsilon");
    here("longitudinal", (metric.longitudinal === "memoize") === !!memoOdds, "does not fit the mechanism");
    here(
      "memo_epsilon",
      memoOdds
        ? memoEpsilon !== null && memoEpsilon > epsilon && memoEpsilon <= lifetimeEpsilon && memoEpsilon >= reveals.memo!
        : memoEpsilon === null,
      "does not fit what a memo reveals, or the other epsilons",
    );
    if (before === mistakes.length) metrics.set(name, makeMetric(metric, places, type, mechanism));
  };

  const top = document as Table | null;
  // Another format has other keys, so complaints about these would mislead.
  if (top instanceof Object && top.format !== FORMAT) claim("format", TOP.format(top.format));
  else if (check("", top, TOP))
    for (const [name, fields] of Object.entries(top!.metrics as Table)) read(name, fields as Table);
  if (mistakes.length) throw new RegistryError(mistakes);
  return { app: top!.app as string, lifetimeEpsilon: top!.lifetime_epsilon as number | null, metrics };
}

/** An entry of a table by its own keys only. */
function get<T>(entries: Readonly<Record<string, T>>, key: string): T | undefined {
  return new Map(Object.entries(entries)).get(key);
}
