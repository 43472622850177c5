// The client that a page embeds. The page records values; timers and events do the rest. Nothing
// that goes wrong reaches the page, except a programmer's mistake in development.
import { systemSource, type Source } from "./bits.ts";
import { AGAIN, develop, mark, report, settled, type Development } from "./development.ts";
import { erase, withdraw, write } from "./device.ts";
import { memoryStore } from "./memory.ts";
import { refuse } from "./mechanisms/base.ts";
import { ACTIVE, MetricError, type RecordedValue } from "./metric.ts";
import { assemble, isDue, settle, take, trim, waiting } from "./outbox.ts";
import { type Entry, gather, type Parts, type ReadRegistry } from "./parts.ts";
import { readRegistry } from "./registry.ts";
import type { Told } from "./segments.ts";
import { freshState, readState, writeState, type Account, type Batch, type State, type StoredReport } from "./state.ts";
import { browserStore, type Store } from "./store.ts";
import { ADDRESS, beacon, type Hops, post } from "./transport.ts";
import type { CompiledRegistry, ValueOf } from "./values.ts";
import { windowAt } from "./windows.ts";

/** How many records may wait for the store; more are dropped and counted. */
const MAX_RECORDS = 10_000;
/** Seconds. Clocks are set, machines sleep, and other tabs share the state. */
const IDLE = 600;
/** Milliseconds after which a deletion that failed is tried again. */
const REPEAT = 3e4;
/** Seconds over which the reports of a closed window are spread. */
const SPREAD = 3600;
const LONGEST_SPREAD = 86_400;

export type ClientStatus = "on" | "no_consent" | "disabled" | "failed" | "closed";

export interface Options extends Partial<Hops> {
  /** Whether the person has agreed. Without it nothing is kept or sent, and what an earlier page
   * left (values and unsent reports) is deleted. */
  consent: boolean;
  /** Sent with each batch, if the collector asks for a key. In a page it is no secret. */
  ingestKey?: string;
  /** Seconds over which the reports of a closed window are spread, up to a day. */
  spread?: number;
  /** Whether what is not declared throws, in development builds. Released builds count it.
   * Or the address of `deniable dev`, for development mode: reports go there alone, and nothing
   * counts. Released builds do nothing with it. */
  development?: boolean | string;
  /** The value of each declared segment, as `setSegments` takes them. */
  segments?: Readonly<Record<string, string>>;
  /** Is called with each trouble that is kept from the page: its kind as in `counters`. */
  onTrouble?: (kind: string, error?: unknown) => void;
  /** Where the state is kept; by default in this browser. */
  state?: Store;
  /** POSIX time in seconds, for tests. */
  clock?: () => number;
  /** Random bits, for tests. Another source in an app breaks the guarantee. */
  source?: Source;
}

/** Options of an entry that has no parts. */
export type ClosedOptions = Omit<Options, "segments" | "relay" | "gateway">;

/** One report of this device; `status` and `reason` are those of the Python SDK. */
export type SentReport = Readonly<StoredReport>;

/** What setTimeout returns, in browsers and in Node. */
type Timer = ReturnType<typeof setTimeout> & { unref?(): void };

/** Telemetry of one app in this browser. */
export interface Client<D extends CompiledRegistry = CompiledRegistry> {
  /** Record a value of a metric. Returns at once, and never throws in production. A value that the
   * metric cannot take is dropped, and counted as "refused".
   * Throws a MetricError in development: no such metric, or it is a pair or a retention. Elsewhere
   * this is counted as "mistake". */
  record<N extends keyof D["metrics"] & string>(name: N, value: ValueOf<D["metrics"][N]>): void;

  /** Write all records and send every finished report now, without the usual delay. Windows that
   * have not ended stay open. Resolves to whether nothing is left to send; false after `timeout`
   * seconds. */
  flush(timeout?: number): Promise<boolean>;

  /** Write all records, send what is due and what answers at once, and stop. Takes up to
   * `timeout` seconds. */
  close(timeout?: number): Promise<unknown>;

  /** The reports that this device has sent or will send; the newest first. */
  sent(): Promise<SentReport[]>;

  /** What the device keeps of each metric that was ever recorded: its windows with the values that
   * wait, and its ledger. It is for the owner of the device alone: never send it. */
  accounts(): Promise<readonly Account[]>;

  /** Whether the person has agreed to telemetry. */
  readonly consent: boolean;

  /** The person agrees. */
  optIn(): void;

  /** The person does not agree, or no longer agrees: delete values and unsent reports, and stop in
   * all tabs. The ledger, the list of windows and the keys of memos stay. */
  optOut(): Promise<void>;

  /** Delete values, all reports, and the keys of memos. The ledger stays. A metric that has
   * reported with memos never does so again in this browser. */
  erase(): Promise<void>;

  /** Whether records are kept, and if not, why. "failed": the state cannot be used or trusted, or
   * the client was built with a mistake. "no_consent" also: a deletion is not stored yet. */
  readonly status: ClientStatus;

  /** How often something went wrong, by kind. None of this is sent. */
  readonly counters: Readonly<Record<string, number>>;
}

/** A client that tells its segments, and that the app was used. */
export interface JointClient<D extends CompiledRegistry = CompiledRegistry> extends Client<D> {
  /** Say that the app was used, for a metric of the type "retention". Returns at once. The first
   * call in a window is reported within ten seconds, and later ones change nothing: the device
   * itself remembers its first window, and the windows since then.
   * Throws a MetricError in development: no such metric, or one of another type. Elsewhere this is
   * counted as "mistake". */
  active(name: keyof D["metrics"] & string): void;

  /** Tell the segments of this browser, like { platform: "web" }. Those that are not named stay as
   * they are, and an open window keeps those of its first record. They are not private: each
   * report of a metric that is counted by them tells them in clear.
   * A value that a segment cannot take is counted as "refused", and the segment is not known then.
   * Throws a MetricError in development: no such segment. Elsewhere this is counted as "mistake". */
  setSegments(segments: Readonly<Record<string, string>>): void;
}

/** The class of the clients of an entry that has parts. */
export const classOf = (entry: Entry) =>
  class {
    constructor(metrics: CompiledRegistry, options: Options) {
      return start(metrics, options, entry);
    }
  } as unknown as new <D extends CompiledRegistry>(metrics: D, options: Options) => JointClient<D>;

/** Start a client. In production it never throws: the client's `status` is then "failed". */
export function start<D extends CompiledRegistry>(
  metrics: D,
  options: Options = {} as Options,
  entry: Entry,
): Client<D> {
  const {
    endpoint,
    ingestKey,
    relay,
    spread = SPREAD,
    onTrouble,
    clock = () => Date.now() / 1000,
    source = systemSource(),
  } = options;
  const development = DEVELOPMENT && options.development !== false;
  let mode: Development | undefined;
  const counters: Record<string, number> = {};
  const { globalPrivacyControl, doNotTrack } = (globalThis.navigator ?? {}) as Navigator & {
    globalPrivacyControl?: boolean;
  };
  const disabled = globalPrivacyControl || doNotTrack === "1";
  let registry: ReadRegistry | undefined;
  /** What sends batches in two hops, once its part is there. */
  let hops: Parts["oblivious"];
  let store: Store | undefined;
  let url: string | undefined;
  // The check below refuses what is neither true nor false.
  let consent = options.consent;
  let closed = false;
  let failed = false;
  /** How many deletions were asked for and are not stored yet, and the last of them. */
  let deletions = 0;
  let forgotten: Promise<unknown> | undefined;
  /** Calls of `record`; they are looked at later, so that they do not hold up the page. */
  let calls: [name: string, value: unknown, at: number, told?: Told][] = [];
  /** What the page has told of its segments, and what it had told when the call in hand was made. */
  let told: Told | undefined;
  let then: Told | undefined;
  /** Batches that are stored, and that the last moment of this page may send. */
  let prepared: Batch[] = [];
  /** The last batch that is being made ready for a beacon, where that takes time. */
  let readied: Promise<unknown> | undefined;
  /** The POSIX time until which the collector asks to wait, as far as this page knows. */
  let asked = 0;
  /** The POSIX times at which the person agreed in this page, and of the last withdrawal before. */
  let agreed = clock();
  let seen: number | undefined;
  let timer: Timer | undefined;
  let soon = false;
  let sending: Promise<unknown> | undefined;

  const status = (): ClientStatus =>
    closed
      ? "closed"
      : disabled
        ? "disabled"
        : failed
          ? "failed"
          : consent && !deletions
            ? "on"
            : "no_consent";
  const isOn = () => status() === "on";

  const note = (kind: string, error?: unknown): void => {
    counters[kind] = (counters[kind] ?? 0) + 1;
    if (DEVELOPMENT) mode?.trouble(kind);
    try {
      onTrouble?.(kind, error);
    } catch {
      // Nothing reaches the page.
    }
  };

  /** Forget what is in memory. */
  const discard = () => {
    calls = [];
    prepared = [];
  };

  /** Stop for the life of this page. */
  const fail = (error?: unknown) => {
    failed = true;
    discard();
    note("state", error);
  };

  /** Read the registry, once and not in the first call: its epsilons take milliseconds. */
  const load = (parts: Parts) => {
    if (FULL && relay !== undefined) (hops = parts.oblivious!).route(options as Hops);
    registry = readRegistry(metrics, parts);
    if (DEVELOPMENT && mode) registry = mode.prepare(registry);
    if (FULL) checkTold(options.segments ?? {});
  };

  /** Count segments that cannot be told; in development, throw for those that are not declared. */
  const checkTold = (given: Told) => {
    for (const name of Object.keys(given)) {
      const segment = registry!.segments.get(name);
      if (segment && registry!.joint!.valueIn(segment, given[name]) !== undefined) continue;
      const error = new MetricError(
        name,
        DEVELOPMENT ? (segment ? "is a segment without such a value" : "is no declared segment") : "",
      );
      if (development && !segment) throw error;
      note(segment ? "refused" : "mistake", error);
    }
  };

  /** The metric of this name that takes what was recorded: a pair takes nothing, and a retention
   * only that the app was used. */
  const recorded = (name: string, value: unknown) => {
    const metric = registry!.metrics.get(name);
    return FULL && (metric?.of || (metric?.type === "retention") !== (value === ACTIVE))
      ? undefined
      : metric;
  };

  /** What a call of `record` means; false once its metric has expired. Throws for a name that is not
   * declared, and for a value that the metric cannot take. */
  const admit = (name: string, value: unknown, now: number) => {
    const metric = recorded(name, value)!;
    if (DEVELOPMENT && !metric) {
      const { of, type } = registry!.metrics.get(name) ?? {};
      throw new MetricError(
        name,
        of
          ? "is a pair, which is not recorded: record its two metrics, and they are joined when the window closes"
          : type === "retention"
            ? "is a retention, which takes no values: call active"
            : type
              ? `is a ${type}, which takes values: call record`
              : "is not declared",
      );
    }
    const text = metric.normalize(value);
    const undeclared = metric.standsIn(text, value);
    const record = now < metric.expires && { metric, text, window: windowAt(metric.window, now), undeclared };
    return FULL && record && metric.segments?.length
      ? { ...record, metric: { ...metric, told: registry!.joint!.resolve(metric.segments, registry!.segments, then ?? {}) } }
      : record;
  };

  /** One transaction. Resolves when its changes are stored; to undefined if they are not. */
  const transact = async <T>(work: (state: State) => T, create?: boolean): Promise<T | undefined> => {
    if (failed && !store) return undefined;
    try {
      const { app } = metrics as unknown as { app: string };
      let result: T;
      store ??= DEVELOPMENT && mode ? memoryStore() : (options.state ?? browserStore(app, fail));
      await store.transact(
        (text) => {
          const state = readState(text, app);
          result = work(state);
          asked = state.asked;
          return writeState(state);
        },
        create ? freshState(app) : undefined,
      );
      return result!;
    } catch (error) {
      fail(error);
      return undefined;
    }
  };

  /** A transaction that does nothing unless reporting is on, also in the other tabs. */
  const change = async <T>(work: (state: State) => T, create?: boolean): Promise<T | undefined> => {
    if (!isOn()) return undefined;
    const result = await transact((state) => {
      if (!isOn()) return undefined;
      // Not one that was made while this tab started. One that was made under a clock far ahead is
      // dated back; the tabs that began before it stop all the same.
      seen ??= isDue(state.withdrawn, agreed)
        ? (state.withdrawn = Math.min(state.withdrawn, agreed))
        : agreed;
      // Another tab may have sent a batch, and got an answer.
      prepared = state.batches.filter(({ id }) => prepared.some((each) => each.id === id));
      if (seen === state.withdrawn) return work(state);
      // Another tab has opted out.
      consent = false;
      discard();
      return undefined;
    }, create);
    // Where nothing is stored, nobody has opted out.
    if (isOn()) seen ??= 0;
    return result;
  };

  /** Delete from memory and from the store. */
  const forget = async (work: (state: State) => void, create?: boolean): Promise<void> => {
    discard();
    deletions++;
    await (forgotten = (async () => {
      // Not in the call that builds the client.
      if (!store) await new Promise((resolve) => setTimeout(resolve));
      await transact(work, create);
    })());
    deletions--;
    // A deletion that failed is repeated; until then nothing is kept or sent here.
    if (failed && store) (setTimeout(forget, REPEAT, work, create) as Timer).unref?.();
    wake(0);
  };

  /** Delete what was recorded and not sent, and tell the other tabs. */
  const decline = (create?: boolean, at = clock()): Promise<void> =>
    forget((state) => {
      withdraw(state);
      state.withdrawn = at;
    }, create);

  /** Run a step after so many seconds. */
  const wake = (seconds: number): void => {
    if (soon || !isOn()) return;
    clearTimeout(timer);
    soon = !seconds;
    timer = setTimeout(step, seconds * 1000);
    // A process of Node may end while it waits.
    if (seconds) timer.unref?.();
  };

  const step = async (urgent?: boolean): Promise<void> => {
    soon = false;
    await save();
    // One after the other; a slow collector does not delay writing.
    await (sending = (async () => {
      await sending;
      await send(urgent);
    })());
    wake(Math.max(0, (prepared[0]?.leased as number) - clock()) || (DEVELOPMENT && mode ? AGAIN : IDLE));
  };

  /** Write all records, and seal the windows that have ended. */
  const save = async (): Promise<void> => {
    await forgotten;
    if (!isOn()) return;
    try {
      if (!registry) {
        const parts = FULL && !DEVELOPMENT ? await gather(entry, metrics, relay !== undefined) : entry;
        // Meanwhile another step may have done it.
        if (!FULL || !registry) load(parts);
      }
    } catch (error) {
      fail(error);
      return;
    }
    const records: RecordedValue[] = [];
    for (const call of calls.splice(0))
      try {
        if (FULL) then = call[3];
        const record = admit(...(call as [string, unknown, number]));
        if (!record) note("expired");
        else if (FULL && "told" in record.metric && !record.metric.told) note("segment");
        else {
          if (record.undeclared) note("other");
          records.push(record);
        }
      } catch (error) {
        note(recorded(call[0], call[1]) ? "refused" : "mistake", error);
      }
    const batch = await change((state) => {
      if (DEVELOPMENT && mode) {
        report(state, registry!, records, clock(), source);
        return undefined;
      }
      const sealed = write(state, registry!, records, clock(), spread, source);
      // Reports that were sealed at once get their batch in the same transaction. So its bytes can
      // be sent in the last moment of a page, when no transaction would end any more.
      const batch = url && assemble(state, sealed, sealed[0]?.ready as number, source);
      for (let dropped = trim(state); dropped--; ) note("dropped");
      return batch;
    }, !!records[0]);
    // Only now is it stored.
    if (batch && isOn()) {
      prepared.push(batch);
      if (FULL && isDue(asked, clock())) readied = hops?.prepare(url!, batch.body, ingestKey, clock);
    }
  };

  /** Send a batch. Returns whether to continue with another. */
  const deliver = async ({ id, body }: Batch): Promise<boolean> => {
    prepared = prepared.filter((each) => each.id !== id);
    const outcome = await (FULL && hops ? hops.post : post)(url!, id, DEVELOPMENT && mode ? mark(body) : body, ingestKey, clock);
    const troubles = await transact((state) => {
      const troubles = settle(state, id, outcome, clock(), source);
      if (DEVELOPMENT && mode) settled(state, clock());
      return troubles;
    });
    troubles?.forEach((kind) => note(kind));
    return !outcome.trouble;
  };

  /** Send the batches that are due, or all, one after the other. */
  const send = async (urgent?: boolean): Promise<void> => {
    let batch: Batch | undefined;
    while (
      url &&
      (batch = await change((state) => take(state, clock(), source, urgent))) &&
      isOn() &&
      (await deliver(batch))
    );
  };

  /** The page may be in its last moment: send the prepared batches without waiting for their
   * jitter. A beacon has no answer, so they stay stored, and are sent again until one comes. */
  const leave = () => {
    if (isOn() && isDue(asked, clock()))
      prepared = prepared.filter(({ body }) => !(FULL && hops ? hops.beacon : beacon)(url!, body, ingestKey));
  };
  const hide = () => {
    leave();
    const saved = save();
    void (FULL ? saved.then(() => readied) : saved).then(leave);
    // There a state in memory ends with the page.
    if (DEVELOPMENT && mode) void step(true);
  };

  /** The result of some work; false if it takes more seconds. */
  const within = <T>(seconds: number, work: Promise<T>): Promise<T | false> =>
    Promise.race([
      work,
      new Promise<false>((resolve) => {
        (setTimeout(resolve, seconds * 1000, false) as Timer).unref?.();
      }),
    ]);

  const must = (holds: unknown, told: string): void => {
    if (DEVELOPMENT && !holds) throw TypeError(told);
    if (!holds) refuse(told);
  };

  try {
    must(typeof consent === "boolean", "consent must be true or false");
    if (DEVELOPMENT) {
      must(spread >= 0 && spread <= LONGEST_SPREAD, "spread must be from 0 to 86400 seconds");
      must(
        !ingestKey || /^[\w.~+/-]{16,256}=*$/.test(ingestKey),
        "ingestKey must have 16 to 256 letters, digits and . _ ~ + / -",
      );
    }
    if (endpoint !== undefined) {
      must(ADDRESS.test(endpoint), "endpoint must be an https:// address, without a name, query or fragment; http:// is for loopback only");
      // A beacon throws for an address that is none.
      new URL(endpoint);
    }
    // A client that cannot send in two hops sends nothing, rather than in one.
    must(FULL || relay === undefined, "deniable/closed has no relay: take the other entry");
    // All such pages share one storage, or have none.
    must(globalThis.location?.protocol !== "file:", "file: is no place to report from: serve the page over https");
    url = endpoint?.replace(/\/*$/, "/v1/reports");
    if (DEVELOPMENT && typeof options.development === "string") {
      mode = develop(options.development);
      url = mode.url;
    }
    if (development) load(entry);
    if (isOn()) wake(0);
    else void decline();
    globalThis.document?.addEventListener("visibilitychange", () =>
      document.hidden ? hide() : wake(0),
    );
    globalThis.addEventListener?.("pagehide", hide);
  } catch (error) {
    if (development) throw error;
    fail(error);
  }

  const client: Client<D> = {
    record(name, value) {
      if (failed) return;
      if (FULL) then = told;
      if (development) {
        let record: ReturnType<typeof admit> | undefined;
        try {
          record = admit(name, value, clock());
        } catch (error) {
          const metric = recorded(name, value);
          if (DEVELOPMENT) mode?.refused(name, !!metric);
          if (!metric) throw error;
          if (DEVELOPMENT && !mode) console.warn(`${(error as Error).message}; the value is dropped`);
        }
        if (DEVELOPMENT && record && record.undeclared) {
          if (mode) mode.undeclared(name);
          else console.warn(`${name}: an undeclared value counts as ${record.text}`);
        }
        if (DEVELOPMENT && mode) {
          if (record === false) mode.ignored("expired_metric", name);
          const now = status();
          if (now === "no_consent" || now === "disabled") mode.ignored(now);
        }
      }
      // While a deletion is being stored, records wait in memory.
      if (!isOn() && !(consent && deletions)) return;
      if (calls.length < MAX_RECORDS)
        calls.push(FULL ? [name, value, clock(), told!] : [name, value, clock()]);
      else note("overflow");
      wake(0);
    },
    async flush(timeout = 5) {
      return !failed && within(timeout, step(true).then(async () => !(await transact(waiting)) && !failed));
    },
    async close(timeout = 2) {
      const rest = async () => {
        await save();
        await sending;
        for (const batch of prepared) if (isDue(asked, clock())) await deliver(batch);
        await send();
      };
      await within(timeout, rest());
      closed = true;
    },
    sent: async () => ((await transact(({ reports }) => reports)) ?? []).reverse(),
    accounts: async () => (await transact(({ accounts }) => accounts)) ?? [],
    get consent() {
      return consent;
    },
    optIn() {
      consent = true;
      seen = undefined;
      agreed = clock();
      wake(0);
    },
    optOut() {
      consent = false;
      return decline(true);
    },
    erase: () => forget(erase),
    get status() {
      return status();
    },
    get counters() {
      return { ...counters };
    },
  };
  if (FULL) {
    told = { ...options.segments };
    (client as JointClient<D>).active = (name) => {
      client.record(name, ACTIVE as never);
    };
    (client as JointClient<D>).setSegments = (given) => {
      if (registry) checkTold(given);
      told = { ...told, ...given };
    };
  }
  return client;
}
