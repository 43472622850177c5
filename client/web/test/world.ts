// What a client meets: a browser's storage and events, and a collector.
import { IDBFactory } from "fake-indexeddb";
import type { Options } from "../src/client.ts";
import { Client } from "../src/entries/closed.ts";
import { readState, type State } from "../src/state.ts";
import { browserStore, type Store } from "../src/store.ts";

type Any = any;

/** A boolean metric at epsilon 1. */
export function booleanMetric(changes: Any = {}): Any {
  return {
    type: "boolean",
    description: "What the test asks.",
    expires: "2027-06-30",
    window: "day",
    aggregate: "first",
    answer: "at_close",
    sample_rate: 1,
    one_in: null,
    longitudinal: "fresh",
    epsilon: 1,
    lifetime_epsilon: 8,
    memo_epsilon: null,
    values: ["true", "false"],
    other: null,
    mechanism: "subset_selection",
    parameters: { size: 2, k: 1, threshold: 6584790284608188 },
    scheme: "5a9aecab0f02",
    reveals: { report: 0.9999999999999996, memo: null, fresh: null },
    platform: ["web"],
    unit: null,
    ...changes,
  };
}

/** A category metric at epsilon 1. */
export const categoryMetric = (changes: Any = {}): Any =>
  booleanMetric({
    type: "category",
    values: ["firefox", "chrome", "safari", "other"],
    parameters: { size: 4, k: 1, threshold: 4281724265078805 },
    scheme: "8f4d9177a857",
    reveals: { report: 0.9999999999999999, memo: null, fresh: null },
    ...changes,
  });

/** `later` waits for its window to end, `now` answers at once. */
export const document = (changes: Any = {}): Any => ({
  format: 1,
  app: "editor",
  lifetime_epsilon: null,
  metrics: {
    later: booleanMetric(),
    now: booleanMetric({ answer: "at_once" }),
  },
  ...changes,
});

/** Noon of a Monday. */
export const NOON = Date.UTC(2027, 0, 4, 12) / 1000;
export const DAY = 86400;

/** A collector: what it has counted, and how it responds. */
export class Collector {
  readonly bodies = new Map<string, string>();
  /** Batches that came with other bytes than before. */
  readonly changed: string[] = [];
  /** Every request, counted or not. */
  readonly requests: { url: string; init: Any; body: string }[] = [];
  respond: (body: string) => Response = (body) => this.count(body);

  readonly fetch = (url: string, init: Any): Promise<Response> => {
    this.requests.push({ url, init, body: init.body });
    return new Promise((resolve) => resolve(this.respond(init.body)));
  };

  /** Count a batch, once, and acknowledge it. */
  count(body: string, rejected: unknown[] = []): Response {
    const { batch } = JSON.parse(body);
    if ((this.bodies.get(batch) ?? body) !== body) this.changed.push(batch);
    this.bodies.set(batch, body);
    return Response.json({ batch, accepted: 1, duplicate: 0, rejected }, { status: 202 });
  }

  /** What arrived, without what came twice. */
  get reports(): Any[] {
    return [...this.bodies.values()].flatMap((body) => JSON.parse(body).reports);
  }
}

/** A new browser without storage, and its collector. */
export class World {
  readonly collector = new Collector();
  readonly beacons: { url: string; body: string }[] = [];
  readonly page = Object.assign(new EventTarget(), { hidden: false });
  readonly window = new EventTarget();
  now = NOON;

  constructor() {
    this.put("indexedDB", new IDBFactory());
    this.put("fetch", this.collector.fetch);
    this.put("document", this.page);
    this.put("addEventListener", this.window.addEventListener.bind(this.window));
    this.put("location", { protocol: "https:" });
    this.navigate({});
  }

  put(name: string, value: unknown): void {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }

  /** Set what the browser says of itself. */
  navigate(navigator: Any): void {
    const sendBeacon = (url: string, body: string) => {
      this.beacons.push({ url, body });
      this.collector.count(body);
      return true;
    };
    this.put("navigator", { sendBeacon, ...navigator });
  }

  client(options: Partial<Options> = {}, metrics: Any = document()): Any {
    return new Client(metrics, {
      consent: true,
      endpoint: "https://t.acme.example",
      spread: 0,
      development: false,
      clock: () => this.now,
      ...options,
    });
  }

  /** The page is hidden, and shown again. */
  hide(): void {
    this.page.hidden = true;
    this.page.dispatchEvent(new Event("visibilitychange"));
  }

  show(): void {
    this.page.hidden = false;
    this.page.dispatchEvent(new Event("visibilitychange"));
  }

  /** The stored state; undefined if there is no database. */
  async state(): Promise<State | undefined> {
    let found: State | undefined;
    const store = browserStore("editor", () => undefined);
    await store.transact((text) => {
      found = readState(text, "editor");
      return text as string;
    });
    return found;
  }

  async databases(): Promise<number> {
    return (await indexedDB.databases()).length;
  }
}

/** Wait so long; without an argument, until what is due has happened. A busy machine needs many
 * turns of the event loop for that, however long one of them takes. */
export async function rest(milliseconds?: number): Promise<void> {
  const turns = milliseconds === undefined ? 40 : 1;
  for (let turn = 0; turn < turns; turn++)
    await new Promise((resolve) => setTimeout(resolve, milliseconds ?? 1));
}

/** A generator of choices, not of noise: a failing case is found again by its seed. */
export function seeded(seed: number): () => number {
  return () => {
    seed = (Math.imul(seed ^ (seed >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0;
    return ((seed ^ (seed >>> 13)) >>> 0) / 2 ** 32;
  };
}

/** A store of a tab that can be killed, and whose transactions can fail. */
export class FragileStore implements Store {
  private readonly inner = browserStore("editor", () => undefined);
  dead = false;
  /** What the next transaction meets. */
  next: "abort" | "die_before" | "die_after" | undefined;

  async transact(change: (text: unknown) => string, initial?: string): Promise<void> {
    const { next } = this;
    this.next = undefined;
    if (next === "die_before") this.dead = true;
    if (!this.dead)
      await this.inner.transact((text) => {
        const changed = change(text);
        if (next === "abort") throw new Error("aborted");
        return changed;
      }, initial);
    if (next === "die_after") this.dead = true;
    if (this.dead) await new Promise(() => undefined);
  }
}
