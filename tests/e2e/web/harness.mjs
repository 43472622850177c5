// What browser tests need: a browser, pages on loopback, a collector that can be killed, and a
// proxy before it that notes each batch and can be offline.
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createServer as createSocket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import puppeteer from "puppeteer-core";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const BUILT = join(HERE, "../../../client/web/dist");
const PAGE = `<!doctype html><html lang="en"><meta charset="utf-8"><title>test</title>
<script src="/deniable.min.js"></script><script src="/metrics.js"></script>
<script src="/page.js"></script>`;
const CHROMIUM = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
];

/** A headless browser with a profile in this folder, which outlives it. */
export async function launch(name, program, profile) {
  const browser = await puppeteer.launch({
    browser: name,
    executablePath: program,
    userDataDir: profile,
    headless: true,
    args: name === "chrome" ? CHROMIUM : [],
    // Firefox answers later on a busy machine.
    protocolTimeout: 60_000,
    timeout: 60_000,
    handleSIGINT: false,
    handleSIGTERM: false,
    handleSIGHUP: false,
  });
  const { pid } = browser.process();
  const end = () => family(pid).forEach(kill);
  leftovers.add(end);
  browser.process().once("exit", () => leftovers.delete(end));
  return browser;
}

/** What is to be ended when this process gives up: functions. */
const leftovers = new Set();

/** Give up after so many seconds, or when asked to, and leave nothing behind. */
export function limit(seconds) {
  const giveUp = (why) => {
    console.error(`given up: ${why}`);
    leftovers.forEach((each) => each());
    process.exit(1);
  };
  setTimeout(giveUp, seconds * 1000, `more than ${seconds} seconds`).unref();
  for (const each of ["SIGTERM", "SIGINT"]) process.on(each, giveUp);
  process.on("unhandledRejection", (error) => giveUp(error?.stack));
}

/** The processes below this one, and itself. */
export function family(pid) {
  let children = "";
  try {
    children = execFileSync("ps", ["--ppid", String(pid), "-o", "pid="], { encoding: "utf8" });
  } catch {
    // It has none.
  }
  return [pid, ...children.split("\n").map(Number).filter(Boolean).flatMap(family)];
}

/** End a process at once; it may have ended by itself. */
export function kill(pid) {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has.
  }
}

/** A server of one page per origin; each origin has its own storage, so it is a device. */
export async function servePages(count, registry, endpoint) {
  const files = {
    "/": ["text/html; charset=utf-8", PAGE],
    "/empty": ["text/html; charset=utf-8", "<!doctype html><title>empty</title>"],
    "/deniable.min.js": ["text/javascript", readFileSync(join(BUILT, "deniable.min.js"))],
    // The page does not bring this part along: it is loaded, as the policy below allows.
    "/deniable.memos.js": ["text/javascript", readFileSync(join(BUILT, "deniable.memos.js"))],
    "/page.js": ["text/javascript", readFileSync(join(HERE, "page.js"))],
    "/metrics.js": ["text/javascript", `const metrics = ${JSON.stringify(registry)};`],
  };
  const policy = `default-src 'none'; script-src 'self'; connect-src ${endpoint}`;
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer((asked, response) => {
        const [type, content] = files[asked.url.split("?")[0]] ?? [];
        const headers = { "Content-Security-Policy": policy, "Cache-Control": "no-store" };
        response.writeHead(type ? 200 : 404, type ? { ...headers, "Content-Type": type } : headers);
        response.end(content);
      });
      await listen(server);
      return server;
    }),
  );
  return {
    origins: servers.map((server) => `http://127.0.0.1:${server.address().port}`),
    close: () => servers.forEach(end),
  };
}

/** A collector in a process group of its own, at a port that it keeps. */
export async function startCollector(command, environment) {
  const port = await freePort();
  let child;
  const collector = {
    port,
    up: false,
    async start() {
      child = spawn(command[0], [...command.slice(1), "--bind", `127.0.0.1:${port}`], {
        detached: true,
        stdio: ["ignore", "ignore", "inherit"],
        env: { ...process.env, ...environment },
      });
      const { pid } = child;
      const end = () => kill(-pid);
      leftovers.add(end);
      child.once("exit", () => leftovers.delete(end));
      for (const begin = Date.now(); !(await answers(port)); ) {
        if (Date.now() - begin > 60_000) throw new Error("the collector did not start");
        await sleep(50);
      }
      collector.up = true;
    },
    /** End it at once, in the middle of whatever it does. */
    async kill() {
      collector.up = false;
      const gone = new Promise((resolve) => child.once("exit", resolve));
      process.kill(-child.pid, "SIGKILL");
      await gone;
      while (await answers(port)) await sleep(20);
    },
    /** End it in order. */
    async stop() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await gone;
    },
  };
  await collector.start();
  return collector;
}

/**
 * A proxy before the collector. A device's endpoint is `${address}/d<number>`. `mode` is "up",
 * "offline" (connections break) or "lost" (requests arrive, replies do not). `seen` has what each
 * device sent: {device, id, body, type, status}.
 */
export async function startProxy(port) {
  const proxy = { mode: "up", seen: [] };
  const server = createServer(async (asked, response) => {
    const [, device, path] = /^\/d(\d+)(\/.*)$/.exec(asked.url) ?? [];
    const chunks = [];
    try {
      for await (const chunk of asked) chunks.push(chunk);
    } catch {
      return; // The page was killed while it sent.
    }
    const { mode } = proxy;
    if (!path || mode === "offline") return asked.socket.destroy();
    const body = Buffer.concat(chunks);
    const entry = { device: Number(device), type: asked.headers["content-type"], status: null };
    if (asked.method === "POST") {
      const text = body.toString();
      proxy.seen.push(Object.assign(entry, { id: JSON.parse(text).batch, body: text }));
    }
    const onward = request(
      { port, host: "127.0.0.1", method: asked.method, path, headers: asked.headers },
      (reply) => {
        entry.status = reply.statusCode;
        if (mode === "lost" && asked.method === "POST") {
          reply.resume();
          asked.socket.destroy();
        } else {
          response.writeHead(reply.statusCode, reply.headers);
          reply.pipe(response);
        }
      },
    );
    onward.on("error", () => asked.socket.destroy());
    onward.end(body);
  });
  await listen(server);
  return Object.assign(proxy, {
    address: `http://127.0.0.1:${server.address().port}`,
    close: () => end(server),
  });
}

/** The address of a page: on that day (0 is today), with these records. */
export function address(origin, options) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(options))
    query.set(name, typeof value === "string" ? value : JSON.stringify(value));
  return `${origin}/?${query}`;
}

/** The result of a promise, or an error after so many milliseconds. */
export function within(promise, milliseconds) {
  // A late error of what was given up is nobody's.
  promise.catch(() => undefined);
  return Promise.race([
    promise,
    sleep(milliseconds, undefined, { ref: false }).then(() => {
      throw new Error("no answer in time");
    }),
  ]);
}

/** What a page's origin has stored; null if nothing. */
export async function readState(page, app) {
  const text = await page.evaluate(
    (name) =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onupgradeneeded = () => opening.transaction.abort();
        opening.onerror = () => resolve(null);
        opening.onsuccess = () => {
          const reading = opening.result.transaction("state").objectStore("state").get("state");
          reading.onsuccess = () => {
            opening.result.close();
            resolve(reading.result);
          };
          reading.onerror = () => reject(reading.error);
        };
      }),
    `deniable:${app}`,
  );
  // The line behind the JSON has the version and a checksum.
  return text && JSON.parse(text.split("\n")[0]);
}

/** Collect what pages complain about; that a browser looks for an icon is not the page's doing. */
export function watch(page, complaints) {
  const note = (text) => {
    if (!text.includes("/favicon.ico")) complaints.push(`${page.url()}: ${text}`);
  };
  page.on("pageerror", (error) => note(error.message));
  page.on("console", (message) => {
    if (/^(error|unhandledrejection|securitypolicyviolation): /.test(message.text()))
      note(message.text());
  });
}

/** Numbers in [0, 1) that a seed determines (mulberry32): for choosing what happens, not noise. */
export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
}

function end(server) {
  server.close();
  server.closeAllConnections();
}

async function freePort() {
  const probe = createSocket();
  await listen(probe);
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

function answers(port) {
  return new Promise((resolve) => {
    const asked = request({ port, host: "127.0.0.1", path: "/healthz" }, (reply) => {
      reply.resume();
      resolve(true);
    });
    asked.on("error", () => resolve(false));
    asked.end();
  });
}
