// One thing after the other, each on a device of its own; the test judges what was found.
// Usage: node scenarios.mjs SETTINGS.json, as for torture.mjs without navigations and seed.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  address,
  launch,
  limit,
  readState,
  servePages,
  startCollector,
  startProxy,
  watch,
} from "./harness.mjs";

const settings = JSON.parse(readFileSync(process.argv[2], "utf8"));
limit(settings.seconds);
const registry = JSON.parse(readFileSync(settings.registry, "utf8"));
const collector = await startCollector(settings.collector, settings.environment);
const proxy = await startProxy(collector.port);
const pages = await servePages(8, registry, proxy.address);
const browser = await launch(settings.browser, settings.program, join(settings.folder, "profile"));
const complaints = [];
const found = {};

const RECORDS = [
  ["visited", true],
  ["browser", "firefox"],
  ["site", "a.example"],
  ["taps", 3],
];

const where = (device, options = {}) =>
  address(pages.origins[device], {
    endpoint: `${proxy.address}/d${device}`,
    records: RECORDS,
    ...options,
  });

async function open(device, options, prepare, context = browser) {
  const page = await context.newPage();
  watch(page, complaints);
  if (prepare) await page.evaluateOnNewDocument(prepare);
  await page.goto(where(device, options));
  return page;
}

const requests = (device) => proxy.seen.filter((each) => each.device === device);
const reports = (device) => requests(device).flatMap((each) => JSON.parse(each.body).reports);
const status = (page) => page.evaluate(() => client.status);

/** Wait until something holds, for some seconds. */
async function until(holds, seconds = 10) {
  for (const begin = Date.now(); Date.now() - begin < seconds * 1000; await sleep(50))
    if (await holds()) return true;
  return false;
}

/** The state of a device after a last visit on the same day, late enough that nothing waits. */
async function settle(device, options = {}, context = browser) {
  const page = await open(device, { records: [], spread: 0, shift: 120, ...options }, null, context);
  await page.evaluate(() => client.flush(10));
  const state = await readState(page, registry.app);
  await page.close();
  return state && { ...state, device };
}

const scenarios = {
  // A tab that lives a second, and nobody comes back.
  async oneSecond(device) {
    const page = await open(device);
    await sleep(1000);
    const before = requests(device).length;
    await page.close();
    const arrived = await until(() => requests(device).some((each) => each.status === 202));
    const first = requests(device).map(({ type, status }) => ({ type, status }));
    return { before, arrived, first, metrics: reports(device).map((each) => each.metric) };
  },
  // Ten tabs of one device record at once, twice, and send at once.
  async tenTabs(device) {
    const tabs = await Promise.all(Array.from({ length: 10 }, () => open(device)));
    await Promise.all(tabs.map((page) => page.evaluate(() => record())));
    const flushed = await Promise.all(tabs.map((page) => page.evaluate(() => client.flush(20))));
    await Promise.all(tabs.map((page) => page.close()));
    return { flushed };
  },
  // What one tab opts out of, the other does not go on with.
  async optOut(device) {
    const one = await open(device);
    const other = await open(device);
    await until(async () => (await readState(one, registry.app))?.reports.length === 3);
    await one.evaluate(() => client.optOut());
    const before = requests(device).length;
    await other.evaluate(async () => {
      record();
      await client.flush(5);
    });
    const after = { one: await status(one), other: await status(other) };
    const state = await readState(one, registry.app);
    await Promise.all([one.close(), other.close()]);
    await sleep(500);
    return { ...after, before, sent: requests(device).length, state };
  },
  // The browser or a person deletes the storage while a page is open.
  async deleted(device) {
    const page = await open(device);
    await until(async () => (await readState(page, registry.app))?.reports.length === 3);
    const gone = await page.evaluate(
      (name) =>
        new Promise((resolve) => {
          const deleting = indexedDB.deleteDatabase(name);
          deleting.onsuccess = () => resolve("deleted");
          deleting.onblocked = () => resolve("blocked");
        }),
      `deniable:${registry.app}`,
    );
    const flushed = await page.evaluate(async () => {
      record();
      return client.flush(5);
    });
    const after = await status(page);
    await page.close();
    await sleep(500);
    return { gone, flushed, status: after, sent: requests(device).length };
  },
  // Global Privacy Control: nothing is kept, nothing leaves.
  async privacyControl(device) {
    const page = await open(device, {}, () =>
      Object.defineProperty(Navigator.prototype, "globalPrivacyControl", { get: () => true }),
    );
    await page.evaluate(() => client.flush(2));
    const found = { status: await status(page), state: await readState(page, registry.app) };
    await page.close();
    await sleep(300);
    return { ...found, sent: requests(device).length };
  },
  // Without storage there is no ledger.
  async denied(device) {
    const page = await open(device, {}, () => {
      IDBFactory.prototype.open = () => {
        throw new DOMException("The user denied permission to access the database.", "SecurityError");
      };
    });
    await page.evaluate(() => client.flush(2));
    const after = await status(page);
    await page.close();
    await sleep(300);
    return { status: after, sent: requests(device).length };
  },
  // A private window is one short life.
  async privateWindow(device) {
    const context = await browser.createBrowserContext();
    const page = await open(device, {}, null, context);
    await page.evaluate(() => client.flush(10));
    const state = await readState(page, registry.app);
    await context.close();
    return { state };
  },
  // Without consent nothing is kept.
  async noConsent(device) {
    const page = await open(device, { consent: "no" });
    await page.evaluate(() => client.flush(2));
    const found = { status: await status(page), state: await readState(page, registry.app) };
    await page.close();
    return { ...found, sent: requests(device).length };
  },
};

for (const [device, [name, scenario]] of Object.entries(scenarios).entries())
  found[name] = await scenario(device);
const states = [await settle(0), await settle(1)];
await browser.close();
await collector.stop();
proxy.close();
pages.close();
writeFileSync(
  settings.result,
  JSON.stringify({ ...found, complaints, states, seen: proxy.seen }),
);
