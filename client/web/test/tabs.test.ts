import assert from "node:assert/strict";
import { test } from "node:test";
import { DAY, FragileStore, NOON, World, booleanMetric, document, rest, seeded } from "./world.ts";

type Any = any;

/** Two tabs in any order of records, clocks, deletions, deaths and lost replies: no window is
 * answered twice, no batch has two bodies, and the ledger is never below what was sent. */
async function play(random: () => number, steps: number): Promise<void> {
  const world = new World();
  const { collector } = world;
  const metrics = document({
    metrics: {
      later: booleanMetric({ lifetime_epsilon: 1000 }),
      now: booleanMetric({ answer: "at_once", lifetime_epsilon: 1000 }),
      half: booleanMetric({ answer: "at_once", lifetime_epsilon: 1000, sample_rate: 0.5 }),
      few: booleanMetric({ answer: "at_once", lifetime_epsilon: 3 }),
    },
  });
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)]!;
  const open = () => {
    const store = new FragileStore();
    return { store, client: world.client({ state: store }, metrics) };
  };
  const tabs = [open(), open()];
  for (let count = 0; count < steps; count++) {
    collector.respond = pick<(body: string) => Response>([
      (body) => collector.count(body),
      (body) => collector.count(body),
      (body) => {
        collector.count(body);
        throw new TypeError("the reply was lost");
      },
      () => new Response("", { status: 502 }),
    ]);
    const at = Math.floor(random() * tabs.length);
    const { client, store } = tabs[at]!;
    const action = Math.floor(random() * 14);
    if (action < 5) client.record(pick(["later", "now", "half", "few"]), random() < 0.5);
    else if (action === 5) world.now += pick([60, 3600, DAY, -3600]);
    else if (action === 6) world.hide();
    else if (action === 7) world.show();
    else if (action === 8) void client.flush(1);
    else if (action === 9 && random() < 0.3) void client.optOut();
    else if (action === 10) client.optIn();
    else if (action === 11) {
      store.next = pick(["abort", "die_before", "die_after"]);
      client.record("now", true);
      await rest(1);
      tabs[at] = open();
    } else if (action === 12) tabs[at] = open();
    else if (action === 13 && random() < 0.1) void client.erase();
    if (random() < 0.5) await rest(0);
  }
  for (const { client } of tabs) await client.flush(1);
  await rest();

  const state = (await world.state())!;
  if (!state) return;
  assert.deepEqual(collector.changed, []);
  const arrived = collector.reports.map(({ metric, window }: Any) => `${metric} ${window}`);
  assert.equal(new Set(arrived).size, arrived.length, "a window was answered twice");
  for (const { name, ledger } of state.accounts) {
    const charged = ledger.reduce((sum, [, , reports]) => sum + reports, 0);
    assert.ok(charged >= arrived.filter((each) => each.startsWith(`${name} `)).length);
    if (name === "few") assert.ok(charged <= 3);
  }
  for (const { body } of world.beacons) assert.equal(collector.bodies.get(JSON.parse(body).batch), body);
  // What is stored and what has arrived is one report for a window.
  for (const each of state.reports)
    assert.equal(
      state.accounts.find(({ name }) => name === each.metric)!.windows[each.window],
      "answered",
    );
}

for (let seed = 1; seed <= 60; seed++)
  test(`tabs, seed ${seed}`, () => play(seeded(seed * 7919), 80));

/** Wherever a tab dies, another one finishes its work: all of a report is stored, or none. */
test("crash points", async () => {
  // The client's timers do not hold a process.
  const held = setInterval(() => undefined, 1000);
  for (const next of ["abort", "die_before", "die_after"] as const)
    for (let transactions = 0; transactions < 4; transactions++) {
      const world = new World();
      const store = new FragileStore();
      const client = world.client({ state: store });
      client.record("later", true);
      await client.flush();
      world.now += DAY;
      const transact = store.transact.bind(store);
      let count = 0;
      store.transact = (...given) => {
        if (count++ === transactions) store.next = next;
        return transact(...given);
      };
      client.record("now", true);
      await client.flush(0.05);
      world.hide();
      await rest();
      const other = world.client();
      other.record("now", true);
      await other.flush();
      await other.flush();
      const windows = world.collector.reports.map(({ metric, window }: Any) => `${metric} ${window}`);
      assert.deepEqual(windows.sort(), ["later 2027-01-04", "now 2027-01-05"], `${next} ${transactions}`);
      assert.deepEqual(world.collector.changed, []);
      const state = (await world.state())!;
      for (const { ledger } of state.accounts) assert.deepEqual(ledger.map((each) => each[2]), [1]);
    }
  clearInterval(held);
});

/** A window ends at midnight UTC, and not before. */
test("windows end at midnight", async () => {
  const world = new World();
  const client = world.client();
  client.record("later", true);
  await client.flush();
  world.now = NOON + DAY / 2 - 0.001;
  await client.flush();
  assert.equal(world.collector.reports.length, 0);
  world.now = NOON + DAY / 2;
  await client.flush();
  assert.equal(world.collector.reports.length, 1);
});
