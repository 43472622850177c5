// Released builds, and the parts that they load where a registry or an option needs them.
import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";
import { bundle, BUNDLES, constants } from "../scripts/bundles.mjs";
import { vectors } from "./support.ts";
import { document, rest, World } from "./world.ts";

type Any = any;

const folder = mkdtempSync(join(tmpdir(), "deniable-"));

/** The registry of a published transcript, whose metrics always take part. */
function registry(name: string): Any {
  const found = vectors("transcripts").find((each: Any) => each.name === name).registry;
  for (const metric of Object.values<Any>(found.metrics)) metric.sample_rate = 1;
  return found;
}

before(async () => {
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  for (const { entry, name, full, globalName } of BUNDLES) {
    const options = { entryPoints: [resolve(entry)], define: constants({ full: full !== false }) };
    writeFileSync(join(folder, `${name}.js`), await bundle({ ...options, format: "esm" }));
    writeFileSync(join(folder, `${name}.min.js`), await bundle({ ...options, format: "iife", globalName }));
  }
});
after(() => rmSync(folder, { recursive: true }));

/** A folder of its own with the released entry and these parts, and the entry as a module of it. */
async function page(...parts: string[]): Promise<{ place: string; module: Any }> {
  const place = mkdtempSync(join(folder, "page-"));
  for (const name of ["deniable", ...parts.map((each) => `deniable.${each}`)])
    copyFileSync(join(folder, `${name}.js`), join(place, `${name}.js`));
  return { place, module: await import(pathToFileURL(join(place, "deniable.js")).href) };
}

const start = (world: World, module: Any, metrics: Any, options: Any = {}): Any =>
  new module.Client(metrics, {
    consent: true,
    endpoint: "https://t.acme.example",
    spread: 0,
    clock: () => world.now,
    ...options,
  });

test("where no part is needed, none is looked for", async () => {
  const world = new World();
  const { module } = await page();
  const client = start(world, module, document());
  client.record("now", true);
  assert.equal(await client.flush(), true);
  assert.equal(world.collector.reports.length, 1);
  assert.deepEqual(client.counters, {});
  // Nor where nobody has agreed, even of a registry that would need one; what was kept is deleted.
  const silent = start(new World(), module, registry("discovery at once"), { consent: false });
  await silent.optOut();
  assert.equal(silent.status, "no_consent");
  assert.deepEqual(silent.counters, {});
});

/** What a page records of a registry before any part can be there. */
const record = (client: Any, metrics: Any): void => {
  for (const [name, { type, values }] of Object.entries<Any>(metrics.metrics))
    if (type === "retention") client.active(name);
    else client.record(name, type === "boolean" ? true : (values?.[0] ?? "tea"));
};

for (const [name, ...parts] of [
  ["discovery at once", "joint"],
  ["segments at once", "joint"],
  ["at once from memos", "memos"],
  ["retention", "joint", "memos"],
] as const)
  test(`${name}: what is recorded before ${parts.join(" and ")} is there is not lost`, async () => {
    const metrics = registry(name);
    const world = new World();
    const segments = metrics.segments && { platform: "web", plan: "free" };
    const { module } = await page(...parts);
    const client = start(world, module, metrics, { segments });
    record(client, metrics);
    assert.equal(await client.flush(), true, JSON.stringify(client.counters));
    assert.deepEqual(client.counters, {});
    const sent = world.collector.reports.map(({ metric }) => metric as string);
    assert.deepEqual(sent.sort(), Object.keys(metrics.metrics).sort());
  });

test("a page that brings its parts along loads none, as a module and as a script", async () => {
  const metrics = registry("retention");
  const parts = Object.fromEntries(
    await Promise.all(
      ["joint", "memos"].map(async (name) => [name, await import(pathToFileURL(join(folder, `deniable.${name}.js`)).href)]),
    ),
  );
  const scripts = ["", ".joint", ".memos"].map((each) => readFileSync(join(folder, `deniable${each}.min.js`), "utf8"));
  const script = runInThisContext(`(() => { ${scripts.join("")}; return deniable; })()`);
  for (const [module, brought] of [[(await page()).module, parts], [script, script.parts]]) {
    const world = new World();
    const client = start(world, module, { ...metrics, parts: brought });
    record(client, metrics);
    assert.equal(await client.flush(), true);
    assert.deepEqual(client.counters, {});
    assert.equal(world.collector.reports.length, 2);
  }
});

test("a part that is missing stops the client, and its mistake stays from the page", async () => {
  const world = new World();
  const troubles: string[] = [];
  const { module } = await page("memos");
  const onTrouble = (kind: string) => troubles.push(kind);
  const client = start(world, module, registry("retention"), { onTrouble });
  client.active("back");
  assert.equal(await client.flush(), false);
  assert.equal(client.status, "failed");
  assert.deepEqual(troubles, ["state"]);
  assert.equal(await world.databases(), 0);
});

/** With a relay nothing is ever sent in one hop: not without the part, nor from the closed entry. */
test("two hops or none", async () => {
  const hops = { relay: "https://relay.example.net", gateway: "A".repeat(87) };
  const closed = (await import(pathToFileURL(join(folder, "deniable.closed.js")).href));
  for (const module of [(await page()).module, (await page("oblivious")).module, closed]) {
    const world = new World();
    const client = start(world, module, document(), hops);
    client.record("now", true);
    await client.flush();
    world.hide();
    await rest();
    assert.deepEqual(world.beacons, []);
    assert.ok(world.collector.requests.every(({ url }) => url.startsWith(`${hops.relay}/`)));
  }
});
