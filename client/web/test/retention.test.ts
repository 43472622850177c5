import assert from "node:assert/strict";
import { test } from "node:test";
import type { MetricError } from "../src/metric.ts";
import { memoryStore } from "../src/memory.ts";
import { describe } from "../src/parts/owner.ts";
import { Client } from "../src/entries/full.ts";
import { full } from "../src/parts/full.ts";
import { readRegistry, RegistryError } from "../src/registry.ts";
import { freshState, readState } from "../src/state.ts";
import { lookBack } from "../src/types/retention.ts";
import { ACTIVE } from "../src/metric.ts";
import { windowAt, windowNumber, windowStart } from "../src/windows.ts";
import { vectors } from "./support.ts";
import { booleanMetric, DAY, NOON } from "./world.ts";

type Any = any;

const { compiled } = vectors("memoized_retention");
const [{ document }] = compiled;
const back = readRegistry(document, full).metrics.get("back")!;
const WEEK = 7 * DAY;

/** The fields that are found wrong. */
function mistakes(given: Any): readonly string[] {
  try {
    readRegistry(given, full);
  } catch (error) {
    assert.ok(error instanceof RegistryError, String(error));
    return error.mistakes.map((each) => each.split(":")[0]!);
  }
  return [];
}

/** A client in memory, whose clock stands at noon of a Monday until it is set. */
function start(metrics: Any = document, more: Any = {}): Any {
  const clock = { now: NOON };
  const client = new Client(metrics, {
    consent: true,
    development: false,
    clock: () => clock.now,
    state: memoryStore(),
    ...more,
  });
  return { client, clock };
}

/** Let the records be written; without an endpoint they wait then. */
const settle = (client: Any): Promise<unknown> => client.flush();

test("the published registries are read, and each bad one is refused by the field's name", () => {
  for (const { name, document: given, error } of compiled) {
    const found = mistakes(given);
    assert.ok(
      error ? found.some((each) => each.startsWith(error)) : !found.length,
      `${name}: found ${found.join(", ")}`,
    );
  }
});

test("every pattern of use has the state and the cohort that follow from it", () => {
  for (let pattern = 1; pattern < 64; pattern++) {
    const weeks = [0, 1, 2, 3, 4, 5].filter((each) => (pattern >> each) & 1);
    const account = readState(freshState("editor"), "editor").accounts;
    account.push({ name: "back", windows: {}, horizon: 0, ledger: [] });
    for (const week of weeks) {
      const window = windowAt("week", NOON + week * WEEK);
      const item = Number(lookBack(account[0]!, back, window));
      account[0]!.windows[window] = "answered";
      const age = week - weeks[0]!;
      const state = !age ? 0 : weeks.includes(week - 1) ? 1 : 2;
      const first = windowNumber(windowAt("week", NOON + weeks[0]! * WEEK));
      assert.equal(item, state * 4 + (age > 2 ? 3 : first % 3), `${pattern}, week ${week}`);
    }
  }
});

test("what is kept of old windows still tells whether the device stayed", () => {
  const start = windowStart(windowAt("week", NOON));
  const account = { name: "back", windows: {}, horizon: start, ledger: [], first: start - 500 * WEEK };
  assert.equal(Number(lookBack(account, back, windowAt("week", NOON))), 4 + 3);
  account.horizon -= WEEK;
  assert.equal(Number(lookBack(account, back, windowAt("week", NOON))), 8 + 3);
});

test("a window has one report, sent at once; a clock before the first window has none", async () => {
  const { client, clock } = start();
  for (const week of [3, 3, 4, 1, 4, 6]) {
    clock.now = NOON + week * WEEK;
    client.active("back");
    client.active("back");
    await settle(client);
  }
  const windows = [6, 4, 3].map((week) => windowAt("week", NOON + week * WEEK));
  const sent = await client.sent();
  assert.deepEqual(sent.map(({ window }: Any) => window), windows);
  assert.equal(new Set(sent.map(({ row }: Any) => row)).size, 1);
  assert.equal((await client.accounts())[0].first, windowStart(windows[2]!));
});

test("a device that is erased forgets when it was new, and reports no more", async () => {
  const { client, clock } = start();
  client.active("back");
  await settle(client);
  await client.erase();
  clock.now += WEEK;
  client.active("back");
  await settle(client);
  const account = (await client.accounts()).find(({ name }: Any) => name === "back");
  assert.deepEqual([account.first, account.key], [undefined, undefined]);
  assert.deepEqual(await client.sent(), []);
});

test("opting out and in again makes no new device", async () => {
  const { client, clock } = start();
  client.active("back");
  await settle(client);
  const [before] = await client.accounts();
  await client.optOut();
  clock.now += 2 * WEEK;
  client.optIn();
  client.active("back");
  await settle(client);
  const [after] = await client.accounts();
  assert.deepEqual([after.first, after.key], [before.first, before.key]);
});

test("the wrong call is a mistake: thrown in development, counted elsewhere", async () => {
  const metrics = { ...document, metrics: { ...document.metrics, dark: { ...booleanMetric(), segments: undefined } } };
  delete metrics.metrics.dark.segments;
  const strict = start(metrics, { development: true }).client;
  for (const [call, message] of [
    [() => strict.record("back", true), /is a retention, which takes no values: call active/],
    [() => strict.active("dark"), /is a boolean, which takes values: call record/],
    [() => strict.active("typo"), /is not declared/],
  ] as const)
    assert.throws(call, (error: MetricError) => message.test(error.message));
  const { client } = start(metrics);
  client.record("back", true);
  client.active("dark");
  client.active("typo");
  await settle(client);
  assert.deepEqual(client.counters, { mistake: 3 });
  assert.deepEqual(await client.sent(), []);
});

test("what waits from another type is no value of a retention", () => {
  for (const text of ["true", "5", "", "firefox"])
    assert.equal(full.types.retention!.item(text, {} as Any, null, new Map()), undefined);
  assert.equal(back.normalize(ACTIVE), "");
});

test("the owner reads how long ago a cohort was new", () => {
  const report = { metric: "back", scheme: back.scheme, window: "2027-W01", status: "sent", ready: 0 };
  const words = (row: number, columns: number): string => describe({ ...report, row, columns } as Any, document);
  assert.match(words(0, 1), /your device named “used in the week before too”; /);
  const number = windowNumber("2027-W01");
  assert.match(words(1, number % 3), /“first used 0 week\(s\) before”/);
  assert.match(words(1, (number - 1) % 3), /“first used 1 week\(s\) before”/);
  assert.match(words(1, (number - 2) % 3), /“first used 2 week\(s\) before”/);
  assert.match(words(1, 3), /“first used earlier”; .* one permanent noisy copy/);
});
