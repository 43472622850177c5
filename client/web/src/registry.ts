import { type Odds, within } from "./exact.ts";
import { fingerprint } from "./fingerprint.ts";
import { form, JOINT_METRIC, METRIC, REVEALS, SEGMENT, TOP } from "./form.ts";
import { type Mechanism, refuse } from "./mechanisms/base.ts";
import { type Declared, isValue, makeMetric, type Metric } from "./metric.ts";
import type { Parts, ReadRegistry } from "./parts.ts";
import type { Segment } from "./segments.ts";
import { windowEnd } from "./windows.ts";

/** The most combinations of segments that a metric may be counted by. */
const MAX_COMBINATIONS = 32;

/** That a compiled registry cannot be used. In development builds `mistakes` name each field that
 * is wrong. */
export class RegistryError extends Error {
  constructor(readonly mistakes: readonly string[]) {
    super(DEVELOPMENT ? `compile metrics.json anew, for this build of the SDK: ${mistakes.join(", ")}` : "");
    this.name = "RegistryError";
  }
}

const isPair = (fields: unknown) => (Object(fields) as Table).type === "pair";

type Table<T = unknown> = Readonly<Record<string, T>>;

/**
 * The registry in a parsed metrics.json, for the parts that are there. No metric is
 * taken that would reveal more than it declares. Development builds also check the form of the
 * file, which `deniable compile` has written. Throws a RegistryError that lists all mistakes.
 */
export function readRegistry(document: unknown, { types, mechanisms, ...rest }: Parts): ReadRegistry {
  const joint = FULL ? rest.joint : undefined;
  /** The paths of the fields that are wrong; released builds only count them. */
  const mistakes: string[] = [];
  const metrics = new Map<string, Metric>();
  const segments = FULL ? new Map<string, Segment>() : undefined!;

  /** Whether something holds; if not, the field is a mistake. */
  const claim = (holds: unknown, field: string): unknown => {
    if (!holds) mistakes.push(DEVELOPMENT ? field : "");
    return holds;
  };

  /** The same for the forms of several fields. */
  const claims = (path: string, forms: Table): boolean =>
    Object.keys(forms).filter((key) => !claim(forms[key], path + key)).length === 0;

  const read = (name: string, fields: Table): void => {
    const path = `metrics.${name}.`;
    if (
      DEVELOPMENT &&
      !claim(/^[a-z][a-z0-9_]{0,63}$/.test(name) && fields instanceof Object, `metrics.${name}`)
    )
      return;
    const type = types[fields.type as string];
    if (
      !claim(type, `${path}type`) ||
      (DEVELOPMENT &&
        (!claims(path, form(fields, { ...METRIC(fields.type), ...("segments" in top && JOINT_METRIC) })) ||
          !claims(`${path}reveals.`, form(fields.reveals as Table, REVEALS))))
    )
      return;

    const metric = fields as unknown as Declared;
    const { epsilon, lifetime_epsilon, memo_epsilon, reveals, values, other } = metric;
    let trying = "expires";
    let expires: number;
    let mechanism: Mechanism;
    try {
      expires = windowEnd(metric.expires);
      if (DEVELOPMENT) trying = "parameters";
      const build =
        mechanisms[metric.mechanism] ?? refuse(`no ${metric.mechanism} in this build`);
      mechanism = build(metric.parameters);
    } catch (error) {
      claim(0, DEVELOPMENT ? `${path + trying}: ${(error as Error).message}` : "");
      return;
    }

    const places = new Map(values?.map((value, place) => [value, place]));
    const { size, odds } = mechanism;
    const memoOdds = FULL ? mechanism.memoOdds : undefined;
    const freshOdds = FULL ? mechanism.freshOdds : undefined;
    // The ledger charges what is claimed: no less than the exact figure. `deniable compile` writes
    // the next double above it, so that all SDKs charge the same.
    const tells = (odds: readonly Odds[] | undefined, claimed: number | null): boolean => {
      const holds = (epsilon: number): boolean => odds!.every((each) => within(each, epsilon));
      return odds
        ? claimed! >= 0 &&
            (DEVELOPMENT
              ? holds(claimed!) && !holds(claimed! * (1 - 2 ** -53))
              : holds(claimed!))
        : claimed === null;
    };
    const before = mistakes.length;
    if (joint) {
      const names = metric.segments ?? [];
      const count = names.reduce((product, each) => product * (segments.get(each)?.values.length ?? 0), 1);
      claim(
        count >= 1 && count <= MAX_COMBINATIONS && names.length < 3 && new Set(names).size === names.length,
        `${path}segments`,
      );
    }
    if (DEVELOPMENT && joint && metric.deny)
      claims(path, {
        deny: joint.isDenyList!(metric.deny),
        minimum_share: metric.minimum_share! >= 0 && metric.minimum_share! < 1,
      });
    if (DEVELOPMENT && joint && metric.type === "retention") claims(path, joint.checkRetention!(metric));
    if (joint && metric.of) claims(path, joint.checkPair(metric, expires, metrics));
    claim(epsilon >= reveals.report && epsilon <= 10, `${path}epsilon`);
    claim(lifetime_epsilon >= epsilon && lifetime_epsilon <= 1e4, `${path}lifetime_epsilon`);
    claim((metric.longitudinal === "memoize") === !!memoOdds, `${path}longitudinal`);
    claim(
      memoOdds
        ? memo_epsilon! > epsilon &&
            memo_epsilon! <= Math.min(lifetime_epsilon, 20) &&
            memo_epsilon! >= reveals.memo!
        : memo_epsilon === null,
      `${path}memo_epsilon`,
    );
    if (FULL) claim(type!.suits(mechanism), `${path}mechanism`);
    claim(tells(odds, reveals.report), `${path}reveals.report`);
    claim(FULL ? tells(memoOdds, reveals.memo) : reveals.memo === null, `${path}reveals.memo`);
    claim(FULL ? tells(freshOdds, reveals.fresh) : reveals.fresh === null, `${path}reveals.fresh`);
    // A value that is listed twice would have a place that is not one of the mechanism.
    if (values)
      claim(places.size === values.length && (size || places.size) === places.size, `${path}values`);
    if (DEVELOPMENT) {
      claims(path, {
        answer: metric.answer === "at_close" || metric.aggregate === "first",
        sample_rate: metric.sample_rate >= 1e-9 && metric.sample_rate <= 1,
        one_in:
          metric.one_in === null ||
          (metric.sample_rate === 1 && metric.one_in === Math.min(1e4, Math.max(2, Math.floor(metric.one_in)))),
        other: other === null || places.has(other),
        scheme: metric.scheme === fingerprint(metric, segments),
      });
      if (values)
        claims(path, {
          values: values.length > 1 && places.size === values.length && values.every(isValue),
        });
    }
    // A pair is checked against the metrics that are right. Without pairs all is refused below.
    if (!joint || before === mistakes.length)
      metrics.set(
        name,
        makeMetric(
          { ...metric, name },
          expires,
          places,
          FULL ? (type!.made?.(metric, mechanism) ?? type!) : type!,
          mechanism,
        ),
      );
  };

  const top = Object(document) as Table;
  const cap = top.lifetime_epsilon as number | null;
  // Another format has other keys, so to list these would mislead.
  if (
    claim(top.format === 1 && (joint || DEVELOPMENT || !top.segments), "format") &&
    (joint || !DEVELOPMENT || claim(!top.segments, "segments")) &&
    (!DEVELOPMENT || claims("", form(top, TOP)))
  ) {
    if (joint)
      for (const [name, segment] of Object.entries((top.segments ?? {}) as Table<Segment>)) {
        if (DEVELOPMENT) {
          const path = `segments.${name}`;
          if (
            !claim(/^[a-z][a-z0-9_]{0,63}$/.test(name) && segment instanceof Object, path) ||
            !claims(`${path}.`, form(segment as unknown as Table, SEGMENT))
          )
            continue;
          const { values, other } = segment;
          const fine = values.length > 1 && values.length <= MAX_COMBINATIONS && values.every(isValue);
          claim(fine && new Set(values).size === values.length, `${path}.values`);
          claim(other === null || values.includes(other), `${path}.other`);
        }
        segments.set(name, segment);
      }
    claim(cap === null || (cap > 0 && cap <= 1e4), "lifetime_epsilon");
    const declared = Object.entries(top.metrics as Table<Table>);
    // A pair is read after its metrics.
    if (joint) declared.sort(([, one], [, other]) => +isPair(one) - +isPair(other));
    for (const each of declared) read(...each);
  }
  if (mistakes.length) throw new RegistryError(mistakes);
  return { app: top.app as string, lifetimeEpsilon: cap, metrics, ...(FULL && { segments, joint }) } as ReadRegistry;
}
