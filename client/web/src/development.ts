// Development mode: reports go to `deniable dev` on this machine, and count nowhere else
// (docs/how-to/test-your-app.md). It is in development builds alone.
import type { Source } from "./bits.ts";
import { write } from "./device.ts";
import type { RecordedValue, Registry } from "./metric.ts";
import type { State } from "./state.ts";
import { windowEnd } from "./windows.ts";

/** Mistakes that are told; a page may make the same one in a loop. */
const MOST_TOLD = 100;
/** Letters of an unknown metric's name that `deniable dev` hears of; it shows no more. */
const LONGEST_NAME = 100;
/** Seconds until a batch is sent again that found no server. It may just be starting. */
export const AGAIN = 1;

/** What a client does otherwise in development mode. */
export type Development = ReturnType<typeof develop>;

/** Development mode with `deniable dev` at an address. Throws a TypeError if that is not on this
 * machine. */
export function develop(address: string) {
  // A strict form: what some resolver or proxy could read otherwise is refused.
  const [, host, port = "80"] =
    /^http:\/\/(127(?:\.\d{1,3}){3}|localhost|\[::1])(?::([1-9]\d{0,4}))?\/?$/.exec(address) ?? [];
  let origin = "";
  try {
    origin = new URL(address).origin;
  } catch {
    // Not an address.
  }
  const exact = `http://${host!}:${port}`;
  if (!host || (origin !== exact && `${origin}:80` !== exact))
    throw new TypeError(
      "development must be an address of this machine, as `deniable dev` prints it, like http://127.0.0.1:8099",
    );
  const told = new Set<string>();

  /** Whether this is told now. */
  const say = (text: string): boolean => {
    if (told.has(text) || told.size >= MOST_TOLD) return false;
    told.add(text);
    console.warn(`deniable: ${text}`);
    return true;
  };

  /** Tell `deniable dev` as well, without any value. If it does not listen, nobody needs to know. */
  const mistake = (code: string, metric: string | null, text: string): void => {
    if (!say(text)) return;
    const name = typeof metric === "string" ? metric.slice(0, LONGEST_NAME) : null;
    fetch(`${origin}/v1/troubles`, {
      method: "POST",
      // As text: builds give the property `trouble` a shorter name.
      body: `{"development":true,"trouble":${JSON.stringify({ code, metric: name })}}`,
      credentials: "omit",
      referrerPolicy: "no-referrer",
      redirect: "manual",
    }).catch(() => {});
  };

  say(
    `DEVELOPMENT MODE: reports go to ${origin} alone, and nothing counts. Leave the option development out before you release`,
  );
  return {
    /** Where batches go. */
    url: `${origin}/v1/reports`,
    /** The registry, with every device answering in every window. Its schemes are the same. */
    prepare(registry: Registry): Registry {
      for (const metric of registry.metrics.values())
        Object.assign(metric, { sample_rate: 1, one_in: null });
      return { ...registry, lifetimeEpsilon: null };
    },
    /** Something went wrong that is kept from the page. */
    trouble(kind: string) {
      // `undeclared` and `refused` have said it.
      if (kind === "other" || kind === "refused") return;
      if (kind === "segment") {
        mistake("missing_segment", null, "a segment is not known, so its metrics are not recorded: call setSegments()");
        return;
      }
      say(
        kind === "network" || kind === "endpoint"
          ? `no report could be sent; is \`deniable dev\` running at ${origin}?`
          : `trouble of the kind ${kind}; ${origin}/live says more`,
      );
    },
    /** `record` drops the value, or throws if the metric is not declared. */
    refused(metric: string, declared: boolean) {
      mistake(
        declared ? "refused_value" : "unknown_metric",
        metric,
        declared
          ? `metric ${metric} cannot take the value that was recorded`
          : `metric ${metric} is not declared: add it to metrics.toml`,
      );
    },
    /** `record` does nothing: the metric has expired, or the client's status is not "on". */
    ignored(why: "expired_metric" | "no_consent" | "disabled", metric = "") {
      mistake(
        why,
        metric || null,
        why === "expired_metric"
          ? `metric ${metric} has expired, so nothing is recorded: set expires to a later day`
          : why === "no_consent"
            ? "consent is false, so nothing is recorded: pass true, or call optIn()"
            : "this browser sends Global Privacy Control or Do Not Track, so nothing is recorded",
      );
    },
    /** A value that is not in the list was recorded. */
    undeclared(metric: string) {
      mistake("undeclared_value", metric, `metric ${metric}: a value that is not in the list counts as its other`);
    },
  };
}

/** A batch with the mark, without which `deniable dev` takes none, and with which nobody else does. */
export const mark = (body: string): string => body.replace("{", '{"development":true,');

/** Make reports of the records at once, as a new device: without a ledger or windows, and every
 * window counts as ended. */
export function report(
  state: State,
  registry: Registry,
  records: readonly RecordedValue[],
  now: number,
  source: Source,
): void {
  state.accounts = [];
  write(state, registry, records, now, 0, source);
  const ends = state.accounts.flatMap(({ windows }) => Object.keys(windows).map(windowEnd));
  for (const end of ends.sort((a, b) => a - b)) write(state, registry, [], end, 0, source);
  for (const each of state.reports) each.ready = 0;
}

/** After an attempt to send: try again soon, and do not send again what was left out. The developer
 * mends the cause, and records once more. */
export function settled(state: State, now: number): void {
  if (state.failures) state.until = state.asked = now + AGAIN;
  for (const each of state.batches) each.leased = Math.min(each.leased, now + AGAIN);
  for (const each of state.reports)
    if (each.status === "queued" && each.reason) each.status = "rejected";
}
