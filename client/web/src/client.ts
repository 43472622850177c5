// The client that a page embeds. The page records values; timers and events do the rest. Nothing
// that goes wrong reaches the page, except a programmer's mistake in development.
import { systemSource, type Source } from "./bits.ts";
import { erase, nextEnd, prepare, withdraw, write, type RecordedValue } from "./device.ts";
import { MetricError } from "./metric.ts";
import { acknowledge, lease, LEASE, nextAttempt, postpone, refuse, take, trim, waiting } from "./outbox.ts";
import { readRegistry, type Parts, type Registry } from "./registry.ts";
import { BLANK, freshState, readState, StateError, writeState, type State, type StoredReport } from "./state.ts";
import { browserStore, type Store } from "./store.ts";
import { beacon, checkIngestKey, post, readReply, reportsUrl } from "./transport.ts";
import type { CompiledRegistry, ValueOf } from "./values.ts";
import { windowAt } from "./windows.ts";

/** How many records may wait for the store; more are dropped and counted. */
const MAX_RECORDS = 10_000;
/** Seconds. Clocks are set, machines sleep, and other tabs share the state. */
const LONGEST_IDLE = 600;
/** Seconds over which the reports of a closed window are spread. */
const SPREAD = 3600;
const LONGEST_SPREAD = 86_400;

/** A bundler sets it: true in the development builds of an app. */
declare const DENIABLE_DEVELOPMENT: boolean | undefined;

export type ClientStatus = "on" | "no_consent" | "disabled" | "failed" | "closed";

export interface Options {
  /** Whether the person has agreed. Without it nothing is kept or sent, and what an earlier page
   * left (values and unsent reports) is deleted. */
  consent: boolean;
  /** The collector's address; without one, reports wait. */
  endpoint?: string;
  /** Sent with each batch, if the collector asks for a key. In a page it is no secret. */
  ingestKey?: string;
  /** Seconds over which the reports of a closed window are spread, up to a day. */
  spread?: number;
  /** Whether mistakes throw. In production they are counted. */
  development?: boolean;
  /** Is called with each error that is kept from the page. */
  onTrouble?: (error: Error) => void;
  /** Where the state is kept; by default in this browser. */
  state?: Store;
  /** POSIX time in seconds, for tests. */
  clock?: () => number;
  /** Random bits, for tests. Another source in an app breaks the guarantee. */
  source?: Source;
}

/** One report of this device; `status` and `reason` are those of the Python SDK. */
export type SentReport = Pick<
  StoredReport,
  "metric" | "scheme" | "window" | "row" | "columns" | "status" | "reason"
> & { readonly description: string };

/** That a report, or a batch, did not reach the collector or was left out. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  /** `kind` is what `counters` calls it. */
  constructor(readonly kind: string) {
    super(`a batch was not counted, or not all of it: ${kind}`);
  }
}

/** Telemetry of one app in this browser. */
export class Client<D extends CompiledRegistry = CompiledRegistry> {
  private _registry!: Registry;
  private _store!: Store;
  private _url: string | undefined;
  private readonly _options: Options;
  private readonly _development: boolean;
  private readonly _clock: () => number;
  private readonly _source: Source;
  private readonly _disabled: boolean;
  private _consent: boolean;
  private _closed = false;
  private _failed = false;
  /** How many deletions were asked for and are not stored yet. */
  private _deletions = 0;
  private _counters: Record<string, number> = {};
  private _records: RecordedValue[] = [];
  /** Batches that are stored, and that the last moment of this page may send. */
  private _prepared = new Map<string, string>();
  private _withdrawals: number | undefined;
  private _waiting = 0;
  private _due = Infinity;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _soon = false;
  private _sending: Promise<unknown> | undefined;

  /** In production it never throws: `status` is then "failed". */
  constructor(metrics: D, options: Options, parts: Parts) {
    this._options = options;
    this._development =
      options.development ?? (typeof DENIABLE_DEVELOPMENT === "boolean" && DENIABLE_DEVELOPMENT);
    this._clock = options.clock ?? (() => Date.now() / 1000);
    this._source = options.source ?? systemSource();
    // "no" would count as true.
    this._consent = options.consent === true;
    this._disabled = isDisabled();
    try {
      this._check(metrics, parts);
    } catch (error) {
      if (this._development) throw error;
      this._fail(error);
      return;
    }
    const { status } = this;
    if (status === "on") this._wake(0);
    else void this._forget(withdrawn);
    this._listen(true);
  }

  private _check(metrics: D, parts: Parts): void {
    const { consent, endpoint, ingestKey, spread = 0, state } = this._options;
    if (typeof consent !== "boolean") throw new TypeError("consent must be true or false");
    if (!(spread >= 0 && spread <= LONGEST_SPREAD))
      throw new TypeError(`spread must be from 0 to ${LONGEST_SPREAD} seconds`);
    if (ingestKey !== undefined) checkIngestKey(ingestKey);
    if (endpoint !== undefined) this._url = reportsUrl(endpoint);
    if (globalThis.location?.protocol === "file:")
      // All such pages share one storage, or have none.
      throw new TypeError("a page under file: cannot report: serve it over https or on loopback");
    this._registry = readRegistry(metrics, parts);
    this._store = state ?? browserStore(this._registry.app, () => this._fail(new StateError("the stored state was deleted")));
  }

  /** Record a value of a metric. Returns at once, and never throws in production.
   * Throws a MetricError in development: no such metric, or it cannot take such a value. */
  record<N extends keyof D["metrics"] & string>(name: N, value: ValueOf<D["metrics"][N]>): void {
    if (this._failed) return;
    try {
      const metric = this._registry.metrics.get(name);
      if (!metric) throw new MetricError(name, "is not declared");
      const text = metric.normalize(value);
      const now = this._clock();
      if (now >= metric.expires) this._count("expired");
      else if (this.status === "on") {
        if (metric.standsIn(text, value)) {
          this._count("other");
          if (this._development)
            console.warn(`metric ${name}: a value that is not declared counts as ${text}`);
        }
        if (this._records.length < MAX_RECORDS) {
          this._records.push({ metric, text, window: windowAt(metric.window, now) });
          this._wake(0);
        } else this._count("overflow");
      }
    } catch (error) {
      if (this._development) throw error;
      this._note("mistake", error);
    }
  }

  /** Write all records and send every finished report now, without the usual delay. Windows that
   * have not ended stay open. Resolves to whether nothing is left to send; false after `timeout`
   * seconds. */
  flush(timeout = 5): Promise<boolean> {
    return this._within(timeout, async () => {
      await this._step(true);
      return !this._failed && (this.status !== "on" || !this._waiting);
    });
  }

  /** Write all records, send what is due and what answers at once, and stop. */
  async close(timeout = 2): Promise<void> {
    await this._within(timeout, async () => {
      await this._write();
      await this._lease([...this._prepared.keys()], 0);
      await this._send(false);
      return true;
    });
    this._closed = true;
    this._listen(false);
    clearTimeout(this._timer);
  }

  /** The reports that this device has sent or will send; the newest first. */
  async sent(): Promise<SentReport[]> {
    const found = await this._transact((state) => state.reports);
    return (found ?? []).reverse().map(({ ready: _, batch: __, ...report }) => ({
      ...report,
      description: this._registry.metrics.get(report.metric)?.description ?? "",
    }));
  }

  /** Whether the person has agreed to telemetry. */
  get consent(): boolean {
    return this._consent;
  }

  /** The person agrees. */
  optIn(): void {
    this._consent = true;
    this._withdrawals = undefined;
    this._wake(0);
  }

  /** The person does not agree, or no longer agrees: delete values and unsent reports, and stop in
   * all tabs. The ledger, the list of windows and the keys of memos stay. */
  optOut(): Promise<void> {
    this._consent = false;
    return this._forget(withdrawn, true);
  }

  /** Delete values, all reports, and the keys of memos. The ledger stays. A metric that has
   * reported with memos never does so again in this browser. */
  erase(): Promise<void> {
    return this._forget((state) => erase(state, this._clock()));
  }

  /** Whether records are kept, and if not, why. "failed": the state cannot be used or trusted, or
   * the client was built with a mistake. "no_consent" also: a deletion is not stored yet. */
  get status(): ClientStatus {
    if (this._closed) return "closed";
    if (this._disabled) return "disabled";
    if (this._failed) return "failed";
    return this._consent && !this._deletions ? "on" : "no_consent";
  }

  /** How often something went wrong, by kind. None of this is sent. */
  get counters(): Record<string, number> {
    return { ...this._counters };
  }

  private _count(kind: string): void {
    this._counters[kind] = (this._counters[kind] ?? 0) + 1;
  }

  private _note(kind: string, error: unknown): void {
    this._count(kind);
    try {
      this._options.onTrouble?.(error as Error);
    } catch {
      // Nothing reaches the page.
    }
  }

  /** Stop for the life of this page. */
  private _fail(error: unknown): void {
    this._failed = true;
    this._discard();
    this._note("state", error);
  }

  /** Forget what is in memory. */
  private _discard(): void {
    this._records = [];
    this._prepared.clear();
  }

  /** One transaction. Resolves when its changes are stored; to undefined if they are not. */
  private async _transact<T>(work: (state: State) => T, create = false): Promise<T | undefined> {
    try {
      let result: T | undefined;
      const { app } = this._registry;
      await this._store.transact(
        (text) => {
          const state = readState(text, app);
          if (!state) throw new StateError("the stored state is damaged: nothing is reported until the browser's data of this site is deleted");
          result = work(state);
          const changed = writeState(state);
          return changed === text ? undefined : changed;
        },
        create ? writeState(freshState(app)) : undefined,
      );
      return result;
    } catch (error) {
      this._fail(error);
      return undefined;
    }
  }

  /** A transaction that does nothing unless reporting is on, also in the other tabs. */
  private async _change<T>(work: (state: State) => T, create = false): Promise<T | undefined> {
    if (this.status !== "on") return undefined;
    return this._transact((state) => {
      if (this.status !== "on") return undefined;
      this._withdrawals ??= state.withdrawals;
      if (this._withdrawals !== state.withdrawals) {
        // Another tab has opted out.
        this._consent = false;
        this._discard();
        return undefined;
      }
      const result = work(state);
      this._waiting = waiting(state);
      this._due = Math.min(nextEnd(state, this._clock()), this._url ? nextAttempt(state) : Infinity);
      return result;
    }, create);
  }

  /** Delete what was recorded and not sent, in memory and in the store. */
  private async _forget(forget: (state: State) => void, create = false): Promise<void> {
    this._discard();
    this._deletions++;
    try {
      const { app } = this._registry;
      await this._store.transact(
        (text) => {
          const state = readState(text, app);
          // Nothing can be deleted from a damaged text selectively. What is left still counts as
          // damaged, so that this device does not start again with an unspent ledger.
          if (!state) return BLANK;
          forget(state);
          return writeState(state);
        },
        create ? writeState(freshState(app)) : undefined,
      );
      this._deletions--;
      this._wake(0);
    } catch (error) {
      this._fail(error);
    }
  }

  /** Run a step after so many seconds. */
  private _wake(seconds: number): void {
    if (this._soon || this.status !== "on") return;
    clearTimeout(this._timer);
    this._soon = !seconds;
    this._timer = setTimeout(() => void this._step(false), seconds * 1000);
    // A process of Node may end while it waits.
    if (seconds) (this._timer as { unref?(): void }).unref?.();
  }

  private async _step(urgent: boolean): Promise<void> {
    this._soon = false;
    await this._write();
    // A slow collector does not delay writing.
    if (urgent || !this._sending) await this._send(urgent);
    if (this._due < Infinity)
      this._wake(Math.min(Math.max(this._due - this._clock(), 1), LONGEST_IDLE));
  }

  /** Write all records, and seal the windows that have ended. */
  private async _write(): Promise<void> {
    const records = this._records;
    this._records = [];
    const now = this._clock();
    const batch = await this._change((state) => {
      const { spread = SPREAD } = this._options;
      const sealed = write(state, this._registry, records, now, spread, this._source);
      const batch = this._url && prepare(state, sealed, this._source);
      const dropped = trim(state);
      if (dropped) this._counters.dropped = (this._counters.dropped ?? 0) + dropped;
      return batch;
    }, records.length > 0);
    // Only now is it stored.
    if (batch && this.status === "on") this._prepared.set(batch.id, batch.body);
  }

  /** Send the batches that are due, or all, one after the other. */
  private async _send(urgent: boolean): Promise<void> {
    if (!this._url) return;
    const before = this._sending;
    const sending = (async () => {
      await before;
      while (await this._deliver(urgent));
    })();
    this._sending = sending;
    await sending;
    if (this._sending === sending) this._sending = undefined;
  }

  /** Send the next batch. Returns whether to continue with another. */
  private async _deliver(urgent: boolean): Promise<boolean> {
    const batch = await this._change((state) => take(state, this._clock(), this._source, urgent));
    if (!batch || this.status !== "on") return false;
    const { id, body } = batch;
    this._prepared.delete(id);
    const reply = await post(this._url!, body, this._options.ingestKey);
    const { rejected, refused, trouble, retryAfter } = readReply(reply, id, this._clock());
    const troubles = await this._transact((state) => {
      const now = this._clock();
      if (rejected) return acknowledge(state, id, rejected, now, this._source);
      if (refused) refuse(state, id, refused);
      else postpone(state, id, retryAfter, now, this._source);
      return [refused ? "rejected" : trouble!];
    });
    for (const kind of troubles ?? []) this._note(kind, new TransportError(kind));
    return !trouble;
  }

  private _listen(on: boolean): void {
    for (const [target, kind] of [[globalThis.document, "visibilitychange"], [globalThis, "pagehide"]] as const)
      target?.[on ? "addEventListener" : "removeEventListener"]?.(kind, this._see);
  }

  /** The page is shown or hidden. Hidden may be its last moment. */
  private readonly _see = (event: Event): void => {
    if (event.type !== "pagehide" && document.visibilityState !== "hidden") this._wake(0);
    else {
      this._leave();
      void this._write().then(() => this._leave());
    }
  };

  /** Send the batches that were prepared by beacon. A beacon has no answer, so they stay stored. */
  private _leave(): void {
    if (this.status !== "on") return;
    const ids: string[] = [];
    for (const [id, body] of this._prepared)
      if (beacon(this._url!, body, this._options.ingestKey)) ids.push(id);
    this._lease(ids, LEASE)
  }

  /** Send the prepared batches so many seconds from now. */
  private async _lease(ids: string[], seconds: number): Promise<void> {
    for (const id of ids) this._prepared.delete(id);
    if (ids.length) await this._change((state) => lease(state, ids, this._clock() + seconds));
  }

  /** The result of some work; false if it takes more seconds. */
  private async _within(seconds: number, work: () => Promise<boolean>): Promise<boolean> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      return await Promise.race([
        work(),
        new Promise<boolean>((resolve) => {
          timer = setTimeout(resolve, seconds * 1000, false);
        }),
      ]);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Delete what was recorded and not sent, and tell the other tabs. */
function withdrawn(state: State): void {
  withdraw(state);
  state.withdrawals++;
}

/** Whether the person has told the browser, or the machine, that they want no telemetry. */
function isDisabled(): boolean {
  const asked = globalThis.navigator as (Navigator & { globalPrivacyControl?: boolean }) | undefined;
  return asked?.globalPrivacyControl === true || asked?.doNotTrack === "1";
}
