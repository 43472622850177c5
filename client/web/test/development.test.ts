import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { develop, mark } from "../src/development.ts";
import { Client as JointClient } from "../src/entries/full.ts";
import { vectors } from "./support.ts";
import { DAY, World, booleanMetric, categoryMetric, document, rest } from "./world.ts";

type Any = any;

const ADDRESS = "http://127.0.0.1:8099";
const { development } = JSON.parse(readFileSync("../vectors/wire.json", "utf8"));

/** What was written to the console. */
function listen(): string[] {
  const lines: string[] = [];
  console.warn = (line: string) => void lines.push(line);
  return lines;
}

/** The batches that arrived, and the mistakes. */
const arrived = (world: World): Any[] =>
  world.collector.requests.filter(({ url }) => url === `${ADDRESS}/v1/reports`).map(({ body }) => JSON.parse(body));
const troubles = (world: World): Any[] =>
  world.collector.requests.filter(({ url }) => url === `${ADDRESS}/v1/troubles`).map(({ body }) => JSON.parse(body));

/** The mark is the first member of a batch, as in the vectors. */
test("mark", () => {
  for (const { body, marked } of development.batches) assert.equal(mark(body), marked);
});

/** Only addresses of this machine are taken, and tricks are refused before anything is sent. */
test("addresses", () => {
  listen();
  for (const address of development.addresses.valid)
    assert.match(develop(address).url, /^http:\/\/(127[.\d]+|localhost|\[::1])(:\d+)?\/v1\/reports$/);
  const world = new World();
  for (const { why, address } of development.addresses.invalid)
    assert.throws(() => world.client({ development: address }), TypeError, why);
  assert.equal(world.collector.requests.length, 0);
});

/** A record is sent at once, marked, to `deniable dev` alone; the endpoint hears nothing, and nothing
 * is stored in the browser. */
test("a record arrives", async () => {
  const world = new World();
  const lines = listen();
  const client = world.client({ development: ADDRESS });
  client.record("later", true);
  client.record("now", true);
  await rest();
  const [batch, ...others] = arrived(world);
  assert.equal(others.length, 0);
  assert.equal(batch.development, true);
  assert.deepEqual(batch.reports.map((each: Any) => each.metric).sort(), ["later", "now"]);
  assert.equal(world.collector.requests.length, 1);
  assert.equal(await world.databases(), 0);
  assert.match(lines[0]!, /^deniable: DEVELOPMENT MODE: .*nothing counts/);
  assert.deepEqual((await client.sent()).map((each: Any) => each.status), ["sent", "sent"]);
});

/** A pair is reported where both its metrics are recorded in one go, a discovery as ever. */
test("pairs and discoveries", async () => {
  const world = new World();
  listen();
  const registries: Any[] = vectors("transcripts").map(({ registry }: Any) => registry);
  const having = (type: string): Any =>
    registries.find(({ metrics }) => Object.values<Any>(metrics).some((each) => each.type === type));
  const metrics = { ...having("pair").metrics, ...having("discovery").metrics };
  const client: Any = new JointClient(
    { ...having("pair"), metrics },
    { consent: true, development: ADDRESS, clock: () => world.now },
  );
  client.record("plan", "firefox");
  client.record("dark", true);
  client.record("word", "weather");
  await rest();
  client.record("plan", "firefox");
  await rest();
  const names = arrived(world).map(({ reports }) => reports.map((each: Any) => each.metric).sort());
  assert.deepEqual(names, [["both", "dark", "plan", "word"], ["plan"]]);
});

/** What is recorded in the last moment of a page is sent, because the state ends with the page. */
test("a page that is left", async () => {
  const world = new World();
  listen();
  const client = world.client({ development: ADDRESS });
  await rest();
  client.record("later", true);
  world.hide();
  await rest(5);
  assert.equal(arrived(world).length, 1);
  assert.equal(world.beacons.length, 0);
});

/** Each flush is a device of its own: its window closes, its ledger is new, and it takes part. */
test("every flush", async () => {
  const world = new World();
  listen();
  const metrics = document({
    lifetime_epsilon: 1,
    metrics: { rare: booleanMetric({ sample_rate: 1e-9, lifetime_epsilon: 1 }) },
  });
  const client = world.client({ development: ADDRESS }, metrics);
  for (let round = 0; round < 5; round++) {
    client.record("rare", true);
    assert.equal(await client.flush(), true);
  }
  assert.equal(arrived(world).length, 5);
});

/** The state of the app, its ledger and its outbox are as they were, and so is consent. */
test("the real state", async () => {
  const world = new World();
  listen();
  const real = world.client();
  real.record("later", true);
  await real.flush();
  await real.close();
  const before = await world.state();
  const client = world.client({ development: ADDRESS });
  client.record("later", false);
  await client.flush();
  await client.optOut();
  await client.erase();
  await client.close();
  assert.deepEqual(await world.state(), before);
  world.now += DAY;
  const again = world.client();
  assert.equal(await again.flush(), true);
  const sent = world.collector.requests.filter(({ url }) => url.startsWith("https://t.acme.example"));
  assert.equal(sent.length, 1);
  assert.equal(JSON.parse(sent[0]!.body).development, undefined);
});

/** Mistakes are on the console and told once, without a value. */
test("mistakes", async () => {
  const world = new World();
  const lines = listen();
  const secret = "secret-value";
  const metrics = document({
    metrics: {
      choice: categoryMetric({ other: "other" }),
      yes: booleanMetric(),
      old: booleanMetric({ expires: "2026-12-31" }),
    },
  });
  const client = world.client({ development: ADDRESS }, metrics);
  for (let round = 0; round < 2; round++) {
    assert.throws(() => client.record("chioce", secret));
    client.record("yes", secret);
    client.record("choice", secret);
    client.record("old", true);
  }
  await rest();
  assert.deepEqual(troubles(world).map(({ trouble }) => [trouble.code, trouble.metric]), [
    ["unknown_metric", "chioce"],
    ["refused_value", "yes"],
    ["undeclared_value", "choice"],
    ["expired_metric", "old"],
  ]);
  assert.ok(!JSON.stringify([lines, world.collector.requests]).includes(secret));
});

/** A segment that was not told is a mistake as well. */
test("segments", async () => {
  const world = new World();
  listen();
  const mode = develop(ADDRESS);
  mode.trouble("segment");
  mode.trouble("segment");
  await rest();
  assert.deepEqual(troubles(world).map(({ trouble }) => trouble.code), ["missing_segment"]);
});

/** Without consent, or where the browser refuses, nothing is sent but that this is so. */
test("switched off", async () => {
  const world = new World();
  listen();
  world.client({ development: ADDRESS, consent: false }).record("now", true);
  world.navigate({ globalPrivacyControl: true });
  world.client({ development: ADDRESS }).record("now", true);
  await rest();
  assert.deepEqual(troubles(world).map(({ trouble }) => trouble.code), ["no_consent", "disabled"]);
  assert.equal(arrived(world).length, 0);
});

/** What `deniable dev` leaves out is not sent again; a batch that found no server is, soon. */
test("trouble", async () => {
  const world = new World();
  const lines = listen();
  const { collector } = world;
  collector.respond = (body) => collector.count(body, [{ index: 0, reason: "unknown_scheme" }]);
  const client = world.client({ development: ADDRESS });
  client.record("now", true);
  assert.equal(await client.flush(), true);
  const [left] = await client.sent();
  assert.deepEqual([left.status, left.reason], ["rejected", "unknown_scheme"]);
  collector.respond = () => {
    throw new TypeError("no server");
  };
  client.record("now", true);
  assert.equal(await client.flush(), false);
  assert.ok(lines.some((line) => /is `deniable dev` running/.test(line)));
  collector.respond = (body) => collector.count(body);
  world.now += 1;
  assert.equal(await client.flush(), true);
  await client.close();
});
