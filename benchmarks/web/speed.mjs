// What the TypeScript SDK costs a page, in Node and in Chromium, beside a list that takes the same.
// Run: npm run speed (in benchmarks/web, after npm ci in client/web and tests/e2e)
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundle, OPTIONS } from "../../client/web/scripts/bundles.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = join(HERE, "../..");
const puppeteer = createRequire(join(ROOT, "tests/e2e/package.json"))("puppeteer-core");

/** Each metric's values, from many calls of an app. */
const WORDS = ["firefox", "chrome", "safari", "edge"];
const VALUES = {
  boolean: [true, false],
  category: WORDS,
  category_memoized: WORDS,
  string: Array.from({ length: 50 }, (_, each) => `https://page${each}.example/`),
  string_memoized: Array.from({ length: 50 }, (_, each) => `https://page${each}.example/`),
  string_rappor: Array.from({ length: 50 }, (_, each) => `https://page${each}.example/`),
  number_mean: [1, 20, 50.5],
  number_distribution: [0.1, 1.5, 12],
};

const document = JSON.parse(
  execFileSync(join(ROOT, ".venv/bin/deniable"), ["compile", join(HERE, "registry.toml")], {
    encoding: "utf8",
  }),
);
const entryPoints = [join(HERE, "measured.js")];
const code = await bundle({ ...OPTIONS, entryPoints, format: "esm" });

const inNode = await import(`data:text/javascript,${encodeURIComponent(code)}`).then((module) =>
  module.measure(document, VALUES, true),
);

const server = createServer((asked, response) => {
  const script = asked.url === "/measured.js";
  response.writeHead(200, { "Content-Type": script ? "text/javascript" : "text/html" });
  response.end(script ? code : "<!doctype html><title>benchmark</title>");
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await puppeteer.launch({
  executablePath: "/usr/bin/chromium",
  headless: true,
  args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage();
await page.goto(`http://127.0.0.1:${server.address().port}/`);
const inChromium = await page.evaluate(
  async (registry, values) =>
    (await import("/measured.js")).measure(registry, values, false),
  document,
  VALUES,
);
await browser.close();
server.close();

const row = (name, pick, goal, digits = 2) => {
  const [node, chromium] = [pick(inNode), pick(inChromium)];
  const met = goal && (Math.max(node, chromium) <= goal ? `≤ ${goal} yes` : `≤ ${goal} NO`);
  console.log(`| ${name} | ${node.toFixed(digits)} | ${chromium.toFixed(digits)} | ${met || ""} |`);
};
console.log("| | Node | Chromium | goal |");
console.log("| --- | ---: | ---: | --- |");
row("the first Client, milliseconds", (each) => each.client);
row("the first record, milliseconds", (each) => each.first, 2);
row("record, microseconds", (each) => each.recording, 20);
row("the same pair into a list", (each) => each.appending);
for (const name of Object.keys(VALUES))
  row(
    `report: ${name.replace("_", ", ")}, ${document.metrics[name].mechanism.replace(/_/g, " ")}`,
    (each) => each.reporting[name],
    100,
  );
