import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/entries/full.ts";
import { describe } from "../src/parts/owner.ts";
import { vectors } from "./support.ts";
import { DAY, World } from "./world.ts";

type Any = any;

const { document } = vectors("compiled").cases.find(({ name }: Any) => name === "segments");

const start = (world: World, options: Any = {}): Any =>
  new Client(document, {
    consent: true,
    endpoint: "https://t.acme.example",
    spread: 0,
    development: false,
    clock: () => world.now,
    ...options,
  });

/** A window keeps the segments of the call that opened it, in a new page too. */
test("a window keeps its first segments", async () => {
  const world = new World();
  const client = start(world, { segments: { platform: "android", plan: "paid" } });
  client.record("dark_mode", true);
  client.setSegments({ platform: "ios" });
  client.record("dark_mode", false);
  await client.flush();
  const { dark_mode: windows } = Object.fromEntries(
    (await client.accounts()).map(({ name, windows }: Any) => [name, windows]),
  );
  assert.deepEqual(Object.values<Any>(windows)[0][2], { platform: "android", plan: "paid" });
  await client.close();
  const next = start(world, { segments: { platform: "søk", plan: "free" } });
  next.record("dark_mode", false);
  world.now += DAY;
  next.record("dark_mode", false);
  await next.flush();
  assert.deepEqual(world.collector.reports.map(({ row }) => row), [3]);
  world.now += DAY;
  await next.flush();
  assert.deepEqual(world.collector.reports.map(({ row }) => row), [3, 4]);
  const [newest] = await next.sent();
  assert.match(
    describe(newest, document),
    /; without noise your device also told platform = “søk” and plan = “free”$/,
  );
});

/** What is not told or not listed is `other`; where there is none, the record is not kept. */
test("segments that are not known", async () => {
  const world = new World();
  const client = start(world, { segments: { platform: "fridge" } });
  client.record("dark_mode", true);
  client.record("photos", 3);
  client.setSegments({ plan: "paid" });
  client.record("dark_mode", true);
  await client.flush();
  assert.deepEqual(client.counters, { segment: 1 });
  world.now += DAY;
  await client.flush();
  assert.deepEqual(
    world.collector.reports.map(({ metric, row }) => [metric, metric === "dark_mode" ? row : 0]).sort(),
    [
      ["dark_mode", 7],
      ["photos", 0],
    ],
  );
});

/** A segment that is not declared throws in development and is a mistake in production; a value that
 * does not fit is refused in both. Neither names the value. */
test("mistakes", async () => {
  for (const segments of [{ shoe: "red" }, { constructor: "x" }] as Any[]) {
    assert.throws(
      () => start(new World(), { development: true, segments }),
      (error: Error) => /segment/.test(error.message) && !/secret/.test(error.message),
    );
    const client = start(new World(), { segments });
    client.record("dark_mode", true);
    await client.flush();
    assert.equal(client.counters.mistake, 1, JSON.stringify(segments));
  }
  for (const segments of [{ plan: "secret" }, { plan: 3 }] as Any[])
    for (const development of [true, false]) {
      const errors: unknown[] = [];
      const client = start(new World(), { segments, development, onTrouble: (_: string, error: unknown) => errors.push(error) });
      client.record("dark_mode", true);
      await client.flush();
      assert.equal(client.counters.refused, 1, JSON.stringify(segments));
      assert.doesNotMatch(errors.join(), /secret/);
    }
  const client = start(new World(), { development: true });
  assert.throws(() => client.setSegments({ shoe: "red" }), /shoe/);
  client.setSegments({ plan: "paid" });
});
