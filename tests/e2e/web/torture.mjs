// Many visits to pages while tabs, browsers and the collector are killed at random moments and the
// network fails; then what the devices say they have sent, for a comparison with the store.
// Usage: node torture.mjs SETTINGS.json, which has browser, program, folder, navigations, seed,
// collector (the command that starts it), environment, registry (compiled) and result (a path).
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  address,
  dice,
  family,
  kill,
  launch,
  limit,
  readState,
  servePages,
  startCollector,
  startProxy,
  watch,
  within,
} from "./harness.mjs";

const DAY = 86400;
/** The clocks of the devices begin so many days ago: the collector still takes these days. */
const DAYS = 4;
/** Tabs that are open at the same time. */
const TABS = 4;
/** Milliseconds after which a page that lives on must have answered. */
const LONG = 1000;
/** Milliseconds for a step, after which the browser is killed. */
const PATIENCE = 20_000;

const settings = JSON.parse(readFileSync(process.argv[2], "utf8"));
limit(settings.seconds);
const registry = JSON.parse(readFileSync(settings.registry, "utf8"));
const random = dice(settings.seed);
const below = (bound) => Math.floor(random() * bound);
const pick = (list) => list[below(list.length)];

const collector = await startCollector(settings.collector, settings.environment);
const proxy = await startProxy(collector.port);
const count = Math.max(4, Math.ceil(settings.navigations / 16));
const pages = await servePages(count, registry, proxy.address);
const devices = pages.origins.map((origin, number) => ({ origin, number, day: -DAYS, left: 0 }));
const complaints = [];
const happened = { navigations: 0, closed: 0, crashed: 0, left: 0, reloaded: 0 };
Object.assign(happened, { stuck: 0, browsersKilled: 0, collectorsKilled: 0, offline: 0, lost: 0 });
/** "device metric day" of what a page must have answered: it lived LONG after it recorded. */
const due = new Set();

let browser = await launch(settings.browser, settings.program, join(settings.folder, "profile"));
const open = [];

const values = () => [
  ["visited", random() < 0.5],
  ["browser", pick(["firefox", "chrome", "safari", "netscape"])],
  ["twice", random() < 0.5],
  ["sometimes", random() < 0.5],
  ["weekly", pick(["tea", "coffee", "milk"])],
  ["site", pick(["a.example", "b.example", "ü.example"])],
  ["taps", below(20)],
  ["theme", pick(["light", "dark", "auto"])],
];

async function visit() {
  const device = pick(devices);
  if (device.day < 0 && random() < 0.3) device.day += 1;
  const options = {
    shift: device.day * DAY,
    endpoint: `${proxy.address}/d${device.number}`,
    records: values(),
    later: random() < 0.5 ? [below(400)] : [],
  };
  const page = await browser.newPage();
  watch(page, complaints);
  const tab = { page, device, day: device.day, loaded: 0 };
  open.push(tab);
  happened.navigations += 1;
  const moment = below(3);
  const going = page.goto(address(device.origin, options), { waitUntil: "load" });
  if (moment === 0) {
    // Leave it loading: what comes next meets it at any point.
    going.then(() => (tab.loaded = Date.now())).catch(() => undefined);
    await sleep(below(120));
  } else {
    await going;
    tab.loaded = Date.now();
    await sleep(moment === 1 ? below(60) : below(500));
  }
}

async function leave(tab) {
  open.splice(open.indexOf(tab), 1);
  if (tab.loaded && random() < 0.15) await sleep(Math.max(0, tab.loaded + LONG - Date.now()));
  if (tab.loaded && Date.now() - tab.loaded >= LONG)
    for (const metric of ["visited", "browser", "site"])
      due.add(`${tab.device.number} ${metric} ${tab.day}`);
  const how = random();
  const done = (name) => (happened[name] += 1);
  if (how < 0.45) {
    done("closed");
    await tab.page.close();
  } else if (how < 0.65) {
    done("crashed");
    await crash(tab.page);
  } else if (how < 0.85) {
    done("left");
    await tab.page.goto(`${pick(pages.origins)}/empty`).catch(() => undefined);
    await tab.page.close();
  } else {
    done("reloaded");
    await tab.page.reload({ waitUntil: "domcontentloaded" }).catch(() => undefined);
    await tab.page.close();
  }
}

/** Kill the process of a tab with whatever it does. */
async function crash(page) {
  if (settings.browser === "chrome") {
    const session = await page.createCDPSession();
    // The answer to this never comes.
    session.send("Page.crash").catch(() => undefined);
    await sleep(50);
    await Promise.race([page.close().catch(() => undefined), sleep(2000)]);
  } else {
    // Firefox's protocol has no such command; a content process of this browser is killed.
    const victims = contentProcesses(browser.process().pid);
    if (victims.length) kill(pick(victims));
    await sleep(50);
    await Promise.race([page.close().catch(() => undefined), sleep(2000)]);
  }
}

/** Firefox's processes for pages, which are children of this one or of its fork server. */
function contentProcesses(pid) {
  return family(pid).filter((each) => {
    try {
      return readFileSync(`/proc/${each}/cmdline`, "utf8").includes("-isForBrowser");
    } catch {
      return false;
    }
  });
}

async function killBrowser() {
  happened.browsersKilled += 1;
  open.length = 0;
  const all = family(browser.process().pid);
  const gone = new Promise((resolve) => browser.process().once("exit", resolve));
  all.forEach(kill);
  await gone;
  await sleep(300);
  browser = await launch(settings.browser, settings.program, join(settings.folder, "profile"));
}

async function trouble() {
  const kind = random();
  if (kind < 0.05) {
    happened.collectorsKilled += 1;
    await collector.kill();
    // Pages meet the broken connections meanwhile.
    sleep(below(1500)).then(() => collector.start());
  } else if (kind < 0.12) {
    happened.offline += 1;
    proxy.mode = "offline";
  } else if (kind < 0.19) {
    happened.lost += 1;
    proxy.mode = "lost";
  } else if (kind < 0.5) proxy.mode = "up";
}

const killAt = new Set([0.25, 0.5, 0.75].map((part) => Math.floor(part * settings.navigations)));
while (happened.navigations < settings.navigations) {
  if (collector.up) await trouble();
  if (killAt.has(happened.navigations)) await killBrowser();
  // A browser whose processes are killed may leave its driver without an answer.
  const step = async () => {
    await visit();
    while (open.length > below(TABS)) await leave(pick(open));
  };
  await within(step(), PATIENCE).catch(async (error) => {
    happened.stuck += 1;
    if (!happened.stuckAt) happened.stuckAt = String(error.message).slice(0, 200);
    await killBrowser();
  });
}
while (!collector.up) await sleep(50);
proxy.mode = "up";
await killBrowser();

// The last visit of each device: today, and late enough that nothing waits any more.
const states = [];
for (const device of devices) {
  const page = await browser.newPage();
  watch(page, complaints);
  const options = { endpoint: `${proxy.address}/d${device.number}`, spread: 0, records: [] };
  let state = null;
  for (let minute = 2; minute < 40; minute += 4) {
    await page.goto(address(device.origin, { ...options, shift: minute * 60 }));
    await page.evaluate(() => client.flush(10));
    state = await readState(page, registry.app);
    if (!state || state.reports.every((each) => each.status !== "queued")) break;
  }
  if (state) states.push({ ...state, device: device.number });
  await page.close();
}
await browser.close();
await collector.stop();
proxy.close();
pages.close();
writeFileSync(
  settings.result,
  JSON.stringify({ happened, complaints, due: [...due], states, seen: proxy.seen }),
);
