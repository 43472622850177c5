import assert from "node:assert/strict";
import { test } from "node:test";
import { bundle, constants } from "../scripts/bundles.mjs";
import { Client } from "../src/entries/closed.ts";
import { Client as AnyClient } from "../src/entries/full.ts";
import { browserStore, type Store } from "../src/store.ts";
import { present, vectors } from "./support.ts";
import { DAY, FragileStore, NOON, World, booleanMetric, categoryMetric, document, rest } from "./world.ts";

/** A metric that answers at once is sealed by its first record and sent; others change nothing. */
test("at once", async () => {
  const world = new World();
  const client = world.client();
  client.record("now", true);
  client.record("now", false);
  assert.equal(await client.flush(), true);
  client.record("now", false);
  assert.equal(await client.flush(), true);
  assert.equal(world.collector.reports.length, 1);
  const [report] = world.collector.reports;
  assert.deepEqual([report.metric, report.window, report.scheme], ["now", "2027-01-04", "5a9aecab0f02"]);
  const [sent] = await client.sent();
  assert.deepEqual([sent.metric, sent.status], ["now", "sent"]);
  assert.equal(client.status, "on");
});

/** A metric that answers at the close of its window is sent only after that. */
test("at close", async () => {
  const world = new World();
  const client = world.client();
  client.record("later", true);
  assert.equal(await client.flush(), true);
  assert.equal(world.collector.requests.length, 0);
  world.now += DAY;
  assert.equal(await client.flush(), true);
  assert.deepEqual(world.collector.reports.map((each) => each.window), ["2027-01-04"]);
});

/** Who comes for a moment every few days loses no report: that of a window long ended is sent at
 * once. After six days there is none, and nothing is charged. */
test("short visits", async () => {
  for (const [every, sent] of [[4, 3], [6, 3], [7, 0]] as const) {
    const world = new World();
    let charged: number | undefined;
    for (let visit = 0; visit < 4; visit++) {
      const client = world.client();
      client.record("later", true);
      await client.close();
      charged = (await client.accounts()).find((each: { name: string }) => each.name === "later").ledger[0]?.[2];
      world.now += every * DAY;
    }
    assert.equal(world.collector.reports.length, sent);
    assert.equal(charged ?? 0, sent);
  }
});

/** The request has the key, and neither cookies nor the page's address; it follows no redirect. */
test("request", async () => {
  const world = new World();
  const client = world.client({ ingestKey: "k".repeat(16) });
  client.record("now", true);
  await client.flush();
  const [{ url, init }] = world.collector.requests as [any];
  assert.equal(url, "https://t.acme.example/v1/reports");
  assert.equal(init.headers.Authorization, `Bearer ${"k".repeat(16)}`);
  assert.equal(init.headers["Content-Type"], undefined, "text needs no preflight");
  assert.deepEqual(
    [init.method, init.credentials, init.referrerPolicy, init.redirect, init.keepalive],
    ["POST", "omit", "no-referrer", "manual", true],
  );
});

/** The jitter delays a report by at most ten seconds, and nothing is sent before. */
test("jitter", async () => {
  const world = new World();
  const client = world.client();
  client.record("now", true);
  await rest();
  assert.equal(world.collector.requests.length, 0);
  const state = (await world.state())!;
  const [batch] = state.batches;
  assert.ok(batch!.leased > NOON && batch!.leased < NOON + 10);
  world.now += 10;
  world.show();
  await rest();
  assert.equal(world.collector.requests.length, 1);
  assert.equal(world.collector.requests[0]!.body, batch!.body);
});

/** The coin is thrown once for a window: with tails nothing of it is ever kept. */
test("coin", async () => {
  const world = new World();
  const metrics = document({ metrics: { now: booleanMetric({ answer: "at_once", sample_rate: 1e-9 }) } });
  const client = world.client({}, metrics);
  client.record("now", true);
  await client.flush();
  const state = (await world.state())!;
  assert.deepEqual(state.accounts[0]!.windows, { "2027-01-04": "passed" });
  assert.deepEqual([state.reports, state.accounts[0]!.ledger], [[], []]);
});

/** In production what is not declared is counted and silent; in development it throws. A value that
 * does not fit is dropped and counted in both. */
test("mistakes of the page", async () => {
  const world = new World();
  const client = world.client();
  for (const [name, value] of [["nothing", true], ["now", "yes"], ["now", undefined], ["constructor", 1]] as const)
    client.record(name, value);
  await client.flush();
  assert.deepEqual(client.counters, { mistake: 2, refused: 2 });
  assert.equal(await world.databases(), 0);
  const strict = world.client({ development: true });
  assert.throws(() => strict.record("nothing", true), { name: "MetricError" });
  const lines: unknown[] = [];
  const warn = console.warn;
  console.warn = (...told) => void lines.push(...told);
  strict.record("now", "a secret");
  console.warn = warn;
  assert.match(String(lines), /^metric now .*the value is dropped$/);
  assert.doesNotMatch(String(lines), /secret/);
  await strict.flush();
  assert.deepEqual(strict.counters, { refused: 1 });
});

/** Whatever a page passes to a metric, nothing is thrown, and nothing of it is recorded. */
test("any value", async () => {
  const hostile = new Proxy({}, { get: () => { throw new Error("hostile"); } });
  const values = [null, undefined, NaN, 5n, Symbol("x"), {}, [], () => 1, hostile, new String("x"), "\ud800"];
  const published = present(vectors("compiled").cases[0].document);
  const names = Object.keys(published.metrics);
  const world = new World();
  const client = new AnyClient(published, { consent: true, development: false, clock: () => world.now });
  const record = (name: unknown, value: unknown) => client.record(name as "", value as never);
  for (const name of names) for (const value of values) record(name, value);
  for (const name of [hostile, Symbol("x"), undefined]) record(name, true);
  await client.flush();
  const { refused = 0, other = 0, ...rest } = client.counters;
  assert.deepEqual([refused + other, rest], [names.length * values.length, { mistake: 3 }]);
  // A text that is not listed is taken as `other`.
  const waiting = await client.accounts();
  assert.ok(waiting.every(({ name, windows }) => published.metrics[name].other || !Object.keys(windows).length));
});

/** A value that is not declared counts as `other`, and the counter says how often. */
test("other", async () => {
  const world = new World();
  const metrics = document({ metrics: { browser: categoryMetric({ other: "other" }) } });
  const client = world.client({}, metrics);
  client.record("browser", "lynx");
  await client.flush();
  assert.deepEqual(client.counters, { other: 1 });
  assert.deepEqual((await world.state())!.accounts[0]!.windows, { "2027-01-04": ["other", 1] });
});

/** An expired metric is no mistake: it is counted, and nothing is kept. */
test("expired", async () => {
  const world = new World();
  world.now = Date.UTC(2027, 6, 1) / 1000;
  const client = world.client({ development: true });
  client.record("now", true);
  await client.flush();
  assert.deepEqual(client.counters, { expired: 1 });
  assert.equal(await world.databases(), 0);
});

/** A client that is built with a mistake says which in development, and is failed in production. */
test("mistakes of the options", async () => {
  const mistakes: [any, any, RegExp][] = [
    [{ consent: "no" }, document(), /consent/],
    [{ spread: -1 }, document(), /spread/],
    [{ spread: NaN }, document(), /spread/],
    [{ ingestKey: "short" }, document(), /ingestKey/],
    [{}, document({ format: 3 }), /format/],
    [{}, null, /metrics.json/],
  ];
  for (const endpoint of [
    "http://t.acme.example", "http://localhost.acme.example", "http://127.0.0.1.acme.example", "t.acme.example",
    "//t.acme.example", "javascript:alert(1)", "https://", "https://me:secret@t.acme.example", "https://t.acme.example/?a=1",
    "https://t.acme.example/#a", "https://t acme.example", "",
  ])
    mistakes.push([{ endpoint }, document(), /endpoint|Invalid URL/]);
  for (const [options, metrics, told] of mistakes) {
    const world = new World();
    assert.throws(() => world.client({ development: true, ...options }, metrics), told, JSON.stringify(options));
    const client = world.client(options, metrics);
    client.record("now", true);
    await client.flush();
    assert.equal(client.status, "failed");
    assert.deepEqual(client.counters, { state: 1 });
    await client.optOut();
    assert.deepEqual(await client.sent(), []);
    assert.equal(await world.databases(), 0);
    assert.equal(world.collector.requests.length, 0);
  }
});

/** Loopback may be plain HTTP, and a path before /v1/reports is kept. */
test("endpoints", async () => {
  for (const [endpoint, url] of [
    ["http://localhost:8080", "http://localhost:8080/v1/reports"],
    ["http://127.0.0.1", "http://127.0.0.1/v1/reports"],
    ["http://[::1]:80/", "http://[::1]:80/v1/reports"],
    ["https://acme.example/t/", "https://acme.example/t/v1/reports"],
  ] as const) {
    const world = new World();
    const client = world.client({ endpoint });
    client.record("now", true);
    await client.flush();
    assert.equal(world.collector.requests[0]?.url, url);
  }
});

/** A page under file: is refused. */
test("file", () => {
  const world = new World();
  world.put("location", { protocol: "file:" });
  assert.throws(() => world.client({ development: true }), /file:/);
  assert.equal(world.client().status, "failed");
});

/** Without consent nothing is stored, not even a database. */
test("no consent", async () => {
  const world = new World();
  const client = world.client({ consent: false });
  client.record("now", true);
  world.hide();
  await client.flush();
  assert.equal(client.status, "no_consent");
  assert.equal(await world.databases(), 0);
  client.optIn();
  client.record("now", true);
  await client.flush();
  assert.equal(world.collector.reports.length, 1);
});

/** Global Privacy Control and Do Not Track stop everything and delete what an earlier page left. */
test("disabled", async () => {
  for (const asked of [{ globalPrivacyControl: true }, { doNotTrack: "1" }]) {
    const world = new World();
    const before = world.client();
    before.record("later", true);
    world.collector.respond = () => new Response("", { status: 500 });
    before.record("now", true);
    await before.flush();
    world.navigate(asked);
    const client = world.client();
    assert.equal(client.status, "disabled");
    client.optIn();
    client.record("now", true);
    await client.flush();
    await rest();
    const state = (await world.state())!;
    assert.deepEqual(state.accounts.map((each) => each.windows["2027-01-04"]), [[], "answered"]);
    assert.deepEqual([state.batches.length, state.reports[0]!.status], [0, "unanswered"]);
  }
});

/** Opting out deletes values and unsent reports, and keeps the ledger and the windows. */
test("opt out", async () => {
  const world = new World();
  const client = world.client();
  client.record("later", true);
  client.record("now", true);
  await rest();
  await client.optOut();
  assert.equal(client.status, "no_consent");
  const state = (await world.state())!;
  assert.deepEqual(state.accounts.map((each) => each.windows["2027-01-04"]), [[], "answered"]);
  assert.equal(state.accounts[1]!.ledger[0]![2], 1);
  assert.deepEqual(state.batches, []);
  client.optIn();
  client.record("now", true);
  world.hide();
  await client.flush();
  // What was withdrawn is never sent, and its window is not answered again.
  assert.deepEqual([world.collector.requests.length, world.beacons.length], [0, 0]);
});

/** Records that were made just before an opt-out are not kept. */
test("opt out at once", async () => {
  const world = new World();
  const client = world.client();
  client.record("later", true);
  client.record("now", true);
  const done = client.optOut();
  client.optIn();
  await done;
  await client.flush();
  const state = (await world.state())!;
  assert.deepEqual([state.reports, state.accounts], [[], []]);
  client.record("now", true);
  await client.flush();
  assert.equal(world.collector.reports.length, 1);
});

/** An opt-out in one tab stops the others, and what they had prepared stays where it is. */
test("opt out in another tab", async () => {
  const world = new World();
  const [one, other] = [world.client(), world.client()];
  await rest();
  await one.optOut();
  other.record("now", true);
  await other.flush();
  assert.equal(other.status, "no_consent");
  assert.equal(world.collector.requests.length, 0);
  // So does one that had read nothing yet. A new page with consent begins again.
  world.now += 1;
  const late = world.client();
  world.now += 1;
  await one.optOut();
  late.record("now", true);
  await late.flush();
  assert.equal(late.status, "no_consent");
  world.now += 1;
  const next = world.client();
  next.record("now", true);
  await next.flush();
  assert.equal(world.collector.reports.length, 1);
});

/** An opt-out under a clock that was far ahead stops the tabs that were open, and no later page. */
test("opt out under another clock", async () => {
  const world = new World();
  const other = world.client();
  await other.flush();
  world.now += 30 * DAY;
  await world.client().optOut();
  world.now -= 30 * DAY;
  other.record("now", true);
  await other.flush();
  assert.equal(other.status, "no_consent");
  for (const days of [0, 29.5]) {
    world.now += days * DAY;
    const next = world.client();
    next.record("now", true);
    await next.flush();
    assert.equal(next.status, "on");
  }
  assert.equal(world.collector.reports.length, 2);
});

/** erase deletes everything but the ledger and the list of windows. */
test("erase", async () => {
  const world = new World();
  const client = world.client();
  client.record("now", true);
  await client.flush();
  await client.erase();
  assert.deepEqual(await client.sent(), []);
  const [account] = (await world.state())!.accounts;
  assert.deepEqual([account!.windows["2027-01-04"], account!.ledger[0]![2]], ["answered", 1]);
  assert.equal(client.status, "on");
});

/** Where the storage does not work, nothing is sent and the status says so; nothing is thrown. */
test("storage denied", async () => {
  const broken: [string, unknown][] = [
    ["missing", undefined],
    ["denied", { open() { throw new DOMException("denied", "SecurityError"); } }],
    ["broken", { open() { const request: any = { error: new DOMException("broken", "UnknownError") }; queueMicrotask(() => request.onerror(new Event("error"))); return request; } }],
  ];
  for (const [name, factory] of broken) {
    const world = new World();
    world.put("indexedDB", factory);
    const client = world.client();
    client.record("now", true);
    assert.equal(await client.flush(), false);
    world.hide();
    await rest();
    assert.equal(client.status, "failed", name);
    assert.deepEqual([world.collector.requests.length, world.beacons.length], [0, 0]);
    await client.optOut();
    await client.close();
  }
});

/** A database of a newer version of the SDK is not used. */
test("newer version", async () => {
  const world = new World();
  await new Promise((resolve) => (indexedDB.open("deniable:editor", 2).onsuccess = resolve));
  const client = world.client();
  client.record("now", true);
  assert.equal(await client.flush(), false);
  assert.equal(client.status, "failed");
});

/** A transaction that cannot be stored changes nothing, sends nothing and ends the client. */
test("quota", async () => {
  const world = new World();
  const store = new FragileStore();
  const client = world.client({ state: store });
  client.record("later", true);
  await client.flush();
  const before = await world.state();
  store.next = "abort";
  client.record("now", true);
  assert.equal(await client.flush(), false);
  world.hide();
  await rest();
  assert.equal(client.status, "failed");
  assert.deepEqual(await world.state(), before);
  assert.deepEqual([world.collector.requests.length, world.beacons.length], [0, 0]);
});

/** A database that is deleted in the middle ends the client for the life of its page. */
test("thrown out", async () => {
  const world = new World();
  const client = world.client();
  client.record("now", true);
  await rest();
  await new Promise((resolve) => (indexedDB.deleteDatabase("deniable:editor").onsuccess = resolve));
  client.record("later", true);
  world.hide();
  await client.flush();
  assert.equal(client.status, "failed");
  assert.deepEqual([world.collector.requests.length, world.beacons.length], [0, 0]);
  assert.equal(await world.databases(), 0);
});

/** A damaged state is never used again: not with a flipped count, not cut off, not emptied. */
test("damage", async () => {
  for (const damage of [
    (text: string) => text.replace('"5a9aecab0f02",0.9999999999999996,1', '"5a9aecab0f02",0.9999999999999996,0'),
    (text: string) => text.slice(0, -1),
    (text: string) => text.replace('"answered"', "[]"),
    () => "",
    () => undefined,
    () => 7,
  ]) {
    const world = new World();
    const client = world.client();
    client.record("now", true);
    await client.flush();
    const database: IDBDatabase = await new Promise((resolve) => {
      const request = indexedDB.open("deniable:editor");
      request.onsuccess = () => resolve(request.result);
    });
    await new Promise((resolve) => {
      const transaction = database.transaction("state", "readwrite");
      const states = transaction.objectStore("state");
      const read = states.get("state");
      read.onsuccess = () => {
        const damaged = damage(read.result as string);
        assert.notEqual(damaged, read.result);
        if (damaged === undefined) states.delete("state");
        else states.put(damaged, "state");
      };
      transaction.oncomplete = resolve;
    });
    const next = world.client();
    next.record("later", true);
    await next.flush();
    assert.equal(next.status, "failed");
  }
});

/** Hiding the page sends by beacon what is stored; the batch stays until it is acknowledged. */
test("beacon", async () => {
  const world = new World();
  const client = world.client({ ingestKey: "k+/~".repeat(4) });
  client.record("now", true);
  world.hide();
  await rest();
  const [beacon] = world.beacons;
  assert.equal(beacon!.url, `https://t.acme.example/v1/reports?key=${encodeURIComponent("k+/~".repeat(4))}`);
  assert.equal((await world.state())!.batches[0]!.body, beacon!.body);
  world.window.dispatchEvent(new Event("pagehide"));
  await rest();
  assert.equal(world.beacons.length, 1);
  const next = world.client();
  await next.flush();
  assert.equal(world.collector.requests[0]!.body, beacon!.body);
  assert.deepEqual([world.collector.bodies.size, (await next.sent())[0].status], [1, "sent"]);
});

/** Hiding the page does not send what waits for its spread. */
test("beacon and spread", async () => {
  const world = new World();
  const client = world.client({ spread: 3600 });
  client.record("later", true);
  await client.flush();
  world.now += DAY;
  world.hide();
  await rest();
  await client.close();
  assert.equal((await world.state())!.reports.length, 1);
  assert.deepEqual([world.collector.requests.length, world.beacons.length], [0, 0]);
});

/** close sends at once what answers at once. */
test("close", async () => {
  const world = new World();
  const client = world.client();
  client.record("now", true);
  await client.close();
  assert.equal(world.collector.reports.length, 1);
  assert.equal(client.status, "closed");
  client.record("later", true);
  await rest();
  assert.equal((await world.state())!.accounts.length, 1);
});

/** After a lost reply the same bytes are sent again, and counted once. */
test("lost reply", async () => {
  const world = new World();
  const { collector } = world;
  collector.respond = (body) => {
    collector.count(body);
    throw new TypeError("the reply was lost");
  };
  const client = world.client();
  client.record("now", true);
  assert.equal(await client.flush(), false);
  assert.deepEqual(client.counters, { network: 1 });
  collector.respond = (body) => collector.count(body);
  assert.equal(await client.flush(), true);
  assert.equal(collector.requests.length, 2);
  assert.deepEqual([collector.bodies.size, collector.changed], [1, []]);
});

/** Retry-After is kept, also by flush; a response that is not a collector's leaves the batch. */
test("replies", async () => {
  const world = new World();
  const { collector } = world;
  const problem = (code: string) => JSON.stringify({ type: `urn:deniable:problem:${code}` });
  collector.respond = () => new Response(problem("queue-full"), { status: 503, headers: { "Retry-After": "100" } });
  const client = world.client();
  client.record("now", true);
  await client.flush();
  await client.flush();
  assert.equal(collector.requests.length, 1);
  world.now += 100;
  collector.respond = () => new Response("<h1>Forbidden</h1>", { status: 403 });
  await client.flush();
  assert.deepEqual(client.counters, { network: 1, endpoint: 1 });
  collector.respond = () => Response.json({ batch: "0".repeat(32), rejected: [] }, { status: 202 });
  await client.flush();
  assert.deepEqual(client.counters, { network: 1, endpoint: 2 });
  assert.equal((await client.sent())[0].status, "queued");
  collector.respond = () => new Response(problem("malformed-batch"), { status: 400 });
  await client.flush();
  const [sent] = await client.sent();
  assert.deepEqual([sent.status, sent.reason], ["rejected", "malformed-batch"]);
  assert.deepEqual(client.counters, { network: 1, endpoint: 2, rejected: 1 });
});

/** A response is read up to 262,144 bytes. A longer one acknowledges nothing, and one without an end is
 * cut off; the batch waits. */
test("long replies", async () => {
  const world = new World();
  const { collector } = world;
  const padded = (body: string, length: number) => {
    const text = JSON.stringify({ batch: JSON.parse(body).batch, rejected: [], pad: "" });
    return new Response(text.replace('""', `"${"x".repeat(length - text.length)}"`), { status: 202 });
  };
  const client = world.client();
  collector.respond = (body) => padded(body, 262_145);
  client.record("now", true);
  assert.equal(await client.flush(), false);
  let cut = false;
  let given = 0;
  collector.respond = () =>
    new Response(
      new ReadableStream({
        pull(stream) {
          given += 65_536;
          stream.enqueue(new Uint8Array(65_536));
        },
        cancel() {
          cut = true;
        },
      }),
    );
  assert.equal(await client.flush(), false);
  assert.ok(cut);
  assert.ok(given < 1e6, `${given} bytes`);
  assert.deepEqual([client.counters, (await client.sent())[0].status], [{ network: 2 }, "queued"]);
  collector.respond = (body) => padded(body, 262_144);
  assert.equal(await client.flush(), true);
  assert.equal((await client.sent())[0].status, "sent");
});

/** close and beacons keep Retry-After, also one that another tab was told; afterwards both send. */
test("leaving while the collector asks to wait", async () => {
  const world = new World();
  const { collector } = world;
  collector.respond = () => new Response("{}", { status: 503, headers: { "Retry-After": "100" } });
  const metric = booleanMetric({ answer: "at_once" });
  const metrics = document({ metrics: { now: metric, then: metric } });
  const one = world.client({}, metrics);
  const other = world.client({}, metrics);
  one.record("now", true);
  await one.flush();
  assert.equal(collector.requests.length, 1);
  for (const client of [one, other]) client.record("then", true);
  await rest();
  world.hide();
  await rest();
  await one.close();
  await other.close();
  assert.deepEqual([collector.requests.length, world.beacons.length], [1, 0]);
  world.now += 100;
  collector.respond = (body) => collector.count(body);
  const next = world.client({}, metrics);
  assert.equal(await next.flush(), true);
  assert.deepEqual([collector.reports.length, collector.changed], [2, []]);
  const last = world.client({}, document({ metrics: { now: metric, then: metric, third: metric } }));
  last.record("third", true);
  await rest();
  await last.close();
  assert.equal(collector.reports.length, 3);
});

/** A wait that was told under a clock far ahead keeps no beacon back. */
test("a wait of another clock", async () => {
  const world = new World();
  world.collector.respond = () => new Response("{}", { status: 503, headers: { "Retry-After": "100" } });
  const metric = booleanMetric({ answer: "at_once" });
  const client = world.client({}, document({ metrics: { now: metric, then: metric } }));
  world.now += 30 * DAY;
  client.record("now", true);
  await client.flush();
  world.now -= 30 * DAY;
  client.record("then", true);
  world.hide();
  await rest();
  assert.equal(world.beacons.length, 1);
});

/** A report that the collector does not know yet joins another batch, until it is too old. */
test("passing reasons", async () => {
  const world = new World();
  const { collector } = world;
  collector.respond = (body) => collector.count(body, [{ index: 0, reason: "unknown_scheme" }]);
  const client = world.client();
  client.record("now", true);
  await client.flush();
  assert.deepEqual(client.counters, { unknown_scheme: 1 });
  assert.equal((await client.sent())[0].status, "queued");
  await client.flush();
  assert.equal(collector.requests.length, 1);
  world.now += 3600;
  await client.flush();
  assert.deepEqual([collector.requests.length, collector.bodies.size], [2, 2]);
  world.now = NOON + 8 * DAY;
  await client.flush();
  assert.equal((await client.sent())[0].status, "rejected");
});

/** A reason that is no code is not repeated. */
test("hostile reason", async () => {
  const world = new World();
  const { collector } = world;
  collector.respond = (body) => collector.count(body, [{ index: 0, reason: "<script>" }]);
  const client = world.client();
  client.record("now", true);
  await client.flush();
  assert.equal((await client.sent())[0].reason, "unknown_reason");
});

/** The ledger stops a metric at its lifetime epsilon, and all metrics at the registry's. */
test("ledger", async () => {
  for (const [metrics, reports] of [
    [document({ metrics: { now: booleanMetric({ answer: "at_once", lifetime_epsilon: 3 }) } }), 3],
    [document({ metrics: { now: booleanMetric({ answer: "at_once", lifetime_epsilon: 100 }) }, lifetime_epsilon: 2 }), 2],
  ]) {
    const world = new World();
    const client = world.client({}, metrics);
    for (let day = 0; day < 6; day++) {
      client.record("now", true);
      await client.flush();
      world.now += DAY;
    }
    assert.equal(world.collector.reports.length, reports);
  }
});

/** A clock that is set back opens no window a second time. */
test("clock set back", async () => {
  const world = new World();
  const client = world.client();
  for (const day of [5, 0, 5, 2, 0]) {
    world.now = NOON + day * DAY;
    client.record("now", true);
    await client.flush();
  }
  const windows = world.collector.reports.map((each) => each.window).sort();
  assert.deepEqual(windows, ["2027-01-04", "2027-01-06", "2027-01-09"]);
});

/** Two tabs answer a window once between them. */
test("two tabs", async () => {
  const world = new World();
  const clients = [world.client(), world.client(), world.client()];
  for (const client of clients) client.record("now", true);
  await Promise.all(clients.map((each) => each.flush()));
  assert.equal(world.collector.reports.length, 1);
});

/** Records that arrive faster than the store takes them are dropped and counted. */
test("overflow", async () => {
  const world = new World();
  const client = world.client();
  for (let count = 0; count < 10_001; count++) client.record("later", true);
  assert.deepEqual(client.counters, { overflow: 1 });
  await client.flush();
});

/** An on_trouble that throws does not reach the page. */
test("trouble", async () => {
  const world = new World();
  const kinds: string[] = [];
  const client = world.client({
    onTrouble(kind: string) {
      kinds.push(kind);
      throw new Error("of the app");
    },
  });
  client.record("nothing", 1);
  await client.flush();
  assert.deepEqual(kinds, ["mistake"]);
});

/** Without an endpoint reports wait, and are sent by a client that has one. */
test("no endpoint", async () => {
  const world = new World();
  const client = world.client({ endpoint: undefined } as any);
  client.record("now", true);
  assert.equal(await client.flush(), false);
  const next = world.client();
  assert.equal(await next.flush(), true);
  assert.equal(world.collector.reports.length, 1);
});

/** Building a client and its first record read neither the registry nor the storage: that is
 * done after the call, so that it does not hold up the page. */
test("first call", async () => {
  const world = new World();
  let read = 0;
  const metrics = new Proxy(document(), {
    get(target, key) {
      read++;
      return target[key];
    },
  });
  const client = world.client({}, metrics);
  client.record("now", true);
  assert.deepEqual([read, await world.databases()], [0, 0]);
  await client.flush();
  assert.ok(read > 0);
  assert.equal(world.collector.reports.length, 1);
});

/** A batch that another tab has sent, and whose report has gone in a later batch, is not sent again
 * by the tab that sealed it: the collector forgets ids of batches that it could not count. */
test("stale batch", async () => {
  const world = new World();
  let known = false;
  const counted = new Map<string, number>();
  world.collector.respond = (body: string) => {
    const { batch, reports } = JSON.parse(body);
    const rejected = known ? [] : reports.map((_: unknown, index: number) => ({ index, reason: "unknown_metric" }));
    if (known) counted.set(batch, reports.length);
    return Response.json({ batch, accepted: reports.length - rejected.length, duplicate: 0, rejected }, { status: 202 });
  };
  world.navigate({ sendBeacon: (_: string, body: string) => Boolean(world.collector.respond(body)) });
  const one = world.client();
  const other = world.client();
  await rest();
  other.record("now", true);
  await rest();
  world.now += 11;
  await one.flush();
  known = true;
  world.now += 3700;
  world.show();
  await rest();
  world.hide();
  await rest();
  assert.deepEqual([...counted.values()], [1]);
  await one.close();
  await other.close();
});

/** While the collector asks to wait, a page with a prepared batch rests. */
test("no busy loop", async () => {
  const world = new World();
  world.collector.respond = () => new Response("{}", { status: 503, headers: { "Retry-After": "3600" } });
  const inner = browserStore("editor", () => undefined);
  let transactions = 0;
  const state: Store = {
    transact(change, initial) {
      transactions++;
      return inner.transact(change, initial);
    },
  };
  const metric = booleanMetric({ answer: "at_once" });
  const client = world.client({ state }, document({ metrics: { now: metric, then: metric } }));
  client.record("now", true);
  await rest();
  world.now += 11;
  await client.flush();
  client.record("then", true);
  await rest();
  world.now += 11;
  world.show();
  await rest();
  transactions = 0;
  await rest(300);
  assert.ok(transactions < 5, `${transactions} transactions`);
  await client.close();
});

/** Without options there is no consent: a mistake that development builds name, and that stops others. */
test("no options", async () => {
  new World();
  const without = Client as unknown as new (metrics: unknown) => unknown;
  assert.throws(() => new without(document()), /consent must be true or false/);
  const code = await bundle({
    stdin: { contents: 'export { Client } from "./src/entries/closed.ts";', resolveDir: process.cwd() },
    format: "esm",
    define: constants({ full: false }),
  });
  const released = (await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { Client: typeof without };
  const client = new released.Client(document()) as Client;
  assert.equal(client.status, "failed");
  client.record("now", true);
  assert.equal(await client.flush(), false);
});
