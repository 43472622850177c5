import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/entries/full.ts";
import { full } from "../src/parts/full.ts";
import { join } from "../src/pairs.ts";
import { describe, ownerPage } from "../src/parts/owner.ts";
import { readRegistry, RegistryError } from "../src/registry.ts";
import { released, vectors } from "./support.ts";
import { DAY, FragileStore, World, rest, seeded } from "./world.ts";

type Any = any;

const { cases } = vectors("pairs");
const [lists, bins] = cases.map(({ registry }: Any) => registry);

/** The registry of two lists and their pair, changed. */
const changed = (change: (metrics: Any) => void, document = lists): Any => {
  const copy = structuredClone(document);
  change(copy.metrics);
  return copy;
};

const start = (world: World, metrics: Any, options: Any = {}): Any =>
  new Client(metrics, {
    consent: true,
    endpoint: "https://t.acme.example",
    spread: 0,
    development: false,
    clock: () => world.now,
    ...options,
  });

for (const { name, registry, cells, joined } of cases)
  test(`vectors: ${name}`, () => {
    const read = readRegistry(registry, full);
    const pair = read.metrics.get("both")!;
    assert.deepEqual(pair.values, cells);
    for (const { texts, cell } of joined) {
      const found = join(pair, read, (each) => texts[pair.of!.indexOf(each)] ?? undefined);
      assert.equal(found === undefined ? null : Number(found), cell, JSON.stringify(texts));
    }
  });

/** Each change of a pair is refused by a field's name. */
test("faults of a pair", () => {
  const faults: [string, (metrics: Any) => void, Any?][] = [
    ["of", (m) => (m.both.of = ["plan", "plan"])],
    ["of", (m) => (m.both.of = ["plan"])],
    ["of", (m) => (m.both.of = ["plan", "dark_mode", "plan"])],
    ["of", (m) => (m.both.of = ["plan", "both"])],
    ["of", (m) => (m.both.of = ["plan", "gone"])],
    ["of", (m) => (m.both.of = ["plan", "constructor"])],
    ["of", (m) => delete m.both.of],
    ["of", (m) => (m.dark_mode.window = "week")],
    ["of", (m) => Object.assign(m.dark_mode, { answer: "at_once", aggregate: "first" })],
    ["of", (m) => (m.dark_mode.expires = "2030-06-29")],
    ["of", (m) => Object.assign(m, { plan: { ...m.plan, platform: ["web"] }, dark_mode: { ...m.dark_mode, platform: ["python"] } })],
    ["of", (m) => (m.both.bins = { plan: [1] })],
    ["of", (m) => (m.both.bins = {}), bins],
    ["of", (m) => (m.both.bins = { seconds: [1, 2, 3] }), bins],
    ["bins", (m) => (m.both.bins = { seconds: [0.5, 0] }), bins],
    ["bins", (m) => (m.both.bins = { seconds: [0, 0.5], word: [1] }), bins],
    ["values", (m) => (m.both.bins = { seconds: [0, 0.6] }), bins],
    ["bins", (m) => (m.both.bins = null)],
    ["forget", (m) => (m.both.forget = "all")],
    ["values", (m) => m.both.values.reverse()],
    ["of", (m) => m.both.values.pop()],
    ["aggregate", (m) => (m.both.aggregate = "first")],
    ["answer", (m) => (m.both.answer = "at_once")],
    ["longitudinal", (m) => (m.both.longitudinal = "memoize")],
    ["mechanism", (m) => (m.both.mechanism = "projective_geometry")],
    ["epsilon", (m) => (m.both.epsilon = 0.1)],
  ];
  for (const [field, change, document] of faults)
    assert.throws(
      () => readRegistry(changed(change, document), full),
      (error: unknown) =>
        error instanceof RegistryError && error.mistakes.some((each) => each.startsWith(`metrics.both.${field}`)),
      `${field}: ${change.toString()}`,
    );
});

/** A released build refuses pairs that would report what their metrics do not; the closed one takes none. */
test("released builds", async () => {
  const { read } = await released();
  for (const { registry } of cases) assert.ok(read(registry).metrics.get("both"));
  for (const change of [
    (m: Any) => (m.both.of = ["plan", "plan"]),
    (m: Any) => (m.both.of = ["plan", "gone"]),
    (m: Any) => (m.both.bins = { plan: [1] }),
    (m: Any) => (m.dark_mode.window = "week"),
    (m: Any) => (m.dark_mode.answer = "at_once"),
    (m: Any) => (m.both.reveals.report = 0.01),
  ])
    assert.throws(() => read(changed(change)), Error, change.toString());
  const { read: small } = await released("closed");
  assert.throws(() => small(lists), Error);
});

/** A pair is not recorded; the error says what to record, and a released page goes on. */
test("recording a pair", async () => {
  assert.throws(
    () => start(new World(), lists, { development: true }).record("both", "free"),
    /metric both is a pair, which is not recorded/,
  );
  const client = start(new World(), lists);
  client.record("both", "free");
  await client.flush();
  assert.deepEqual(client.counters, { mistake: 1 });
});

/** The owner's page counts values that wait for a pair alone, and words name both metrics. */
test("the owner's page", async () => {
  const world = new World();
  const metrics = changed((m) => (m.both.forget = "marginals"));
  const client = start(world, metrics);
  client.record("plan", "pro");
  client.record("dark_mode", true);
  await client.flush();
  assert.match(await ownerPage(client, metrics), /2 true values wait/);
  world.now += DAY;
  await client.flush();
  const sent = await client.sent();
  assert.deepEqual(sent.map(({ metric }: Any) => metric), ["both"]);
  assert.match(describe(sent[0], metrics), /^your device said “plan=[^”]+ × dark_mode=/);
  const page = await ownerPage(client, metrics);
  assert.doesNotMatch(page, /true values? waits?/);
});

/** Two tabs in any order of records, clocks, deletions, deaths and lost replies: no window of a pair
 * or of its metrics is answered twice, and no value outlives its window. */
async function play(random: () => number, steps: number): Promise<void> {
  const world = new World();
  const { collector } = world;
  const metrics = changed((m) => {
    for (const each of Object.values<Any>(m)) each.lifetime_epsilon = 1000;
    m.dark_mode.sample_rate = 0.5;
    m.few = { ...structuredClone(m.both), lifetime_epsilon: 2 * m.both.epsilon, sample_rate: 0.7 };
    if (random() < 0.5) m.both.forget = "marginals";
  });
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!;
  const open = () => {
    const store = new FragileStore();
    return { store, client: start(world, metrics, { state: store }) };
  };
  const record = (client: Any) =>
    random() < 0.5 ? client.record("plan", pick(["free", "pro"])) : client.record("dark_mode", random() < 0.5);
  const tabs = [open(), open()];
  for (let count = 0; count < steps; count++) {
    collector.respond = pick<(body: string) => Response>([
      (body) => collector.count(body),
      (body) => {
        collector.count(body);
        throw new TypeError("the reply was lost");
      },
      () => new Response("", { status: 502 }),
    ]);
    const at = Math.floor(random() * tabs.length);
    const { client, store } = tabs[at]!;
    const action = Math.floor(random() * 12);
    if (action < 5) record(client);
    else if (action < 7) world.now += pick([3600, DAY, DAY, -3600]);
    else if (action === 7) void client.flush(1);
    else if (action === 8 && random() < 0.3) void client.optOut();
    else if (action === 9) client.optIn();
    else if (action === 10) {
      store.next = pick(["abort", "die_before", "die_after"]);
      record(client);
      await rest(1);
      tabs[at] = open();
    } else if (action === 11 && random() < 0.2) void client.erase();
    if (random() < 0.5) await rest(0);
  }
  world.now += DAY;
  for (const { client } of tabs) await client.flush(1);
  await rest();

  const state = await world.state();
  if (!state) return;
  assert.deepEqual(collector.changed, []);
  const arrived = collector.reports.map(({ metric, window }: Any) => `${metric} ${window}`);
  assert.equal(new Set(arrived).size, arrived.length, "a window was answered twice");
  const stored = state.reports.map(({ metric, window }) => `${metric} ${window}`);
  assert.equal(new Set(stored).size, stored.length, "a window has two reports");
  if (metrics.metrics.both.forget) assert.doesNotMatch(stored.join(), /plan|dark_mode/);
  for (const { name, ledger, held } of state.accounts) {
    const charged = ledger.reduce((sum, [, , reports]) => sum + reports, 0);
    assert.ok(charged >= arrived.filter((each) => each.startsWith(`${name} `)).length);
    if (name === "few") assert.ok(charged <= 2);
    for (const window in held)
      assert.ok(Date.parse(window) / 1000 + DAY > world.now - 2 * DAY, "a value outlives its window");
  }
}

for (let seed = 1; seed <= 30; seed++)
  test(`tabs with a pair, seed ${seed}`, () => play(seeded(seed * 6151), 80));

/** Wherever a tab dies, another one finishes its work: each window has its one report, and no value stays. */
test("crash points of a pair", async () => {
  const alive = setInterval(() => undefined, 1000);
  for (const forget of [null, "marginals"])
    for (const next of ["abort", "die_before", "die_after"] as const)
      for (let transactions = 0; transactions < 3; transactions++) {
        const world = new World();
        const metrics = changed((m) => (m.both.forget = forget));
        const store = new FragileStore();
        const client = start(world, metrics, { state: store });
        client.record("plan", "pro");
        client.record("dark_mode", true);
        await client.flush();
        world.now += DAY;
        const transact = store.transact.bind(store);
        let count = 0;
        store.transact = (...given) => {
          if (count++ === transactions) store.next = next;
          return transact(...given);
        };
        await client.flush(0.05);
        const other = start(world, metrics);
        await other.flush();
        await other.flush();
        const metricsSeen = world.collector.reports.map(({ metric }: Any) => metric);
        assert.deepEqual(metricsSeen.sort(), forget ? ["both"] : ["both", "dark_mode", "plan"]);
        const state = (await world.state())!;
        for (const { held, ledger } of state.accounts) {
          assert.deepEqual(Object.keys(held ?? {}), []);
          for (const each of ledger) assert.equal(each[2], 1);
        }
      }
  clearInterval(alive);
});
