// The size of our entries beside other telemetry packages, bundled by one command, as a table.
// Run: npm run size (in benchmarks/web, after npm ci)
//
// "all" bundles everything that a package's entry exports; "least" only what an app needs that
// starts it and records one thing, so unused parts can fall away.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { bundle, constants, plugins, ROOT } from "../../client/web/scripts/bundles.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));

const OURS = (entry, build = {}) => [
  join(ROOT, "src/entries", entry),
  `import { Client } from "${join(ROOT, "src/entries", entry)}";
   const client = new Client(registry, { endpoint, consent: true });
   client.record("browser", "firefox");`,
  build,
];
const PACKAGES = {
  "deniable, boolean and category": OURS("closed.ts", { full: false }),
  "deniable, all types": OURS("all.ts"),
  "deniable, with segments, pairs and discovery": OURS("joint.ts", { joint: true }),
  "deniable, the same in two hops": OURS("oblivious.ts", { joint: true, hops: true }),
  "plausible-tracker": [
    "plausible-tracker",
    `import Plausible from "plausible-tracker";
     Plausible({ domain }).trackEvent("signup");`,
  ],
  "web-vitals": ["web-vitals", `import { onLCP } from "web-vitals"; onLCP(report);`],
  "@mozilla/glean": [
    "@mozilla/glean/web",
    `import Glean from "@mozilla/glean/web";
     import StringMetricType from "@mozilla/glean/private/metrics/string";
     Glean.initialize("app", true, {});
     new StringMetricType({ category: "a", name: "b", sendInPings: ["c"], lifetime: "ping", disabled: false }).set("d");`,
  ],
  "posthog-js-lite": [
    "posthog-js-lite",
    `import PostHog from "posthog-js-lite"; new PostHog(key).capture("signup");`,
  ],
  "@sentry/browser": [
    "@sentry/browser",
    `import { init, captureMessage } from "@sentry/browser"; init({ dsn }); captureMessage("m");`,
  ],
  "@divviup/dap": [
    "@divviup/dap",
    `import Task from "@divviup/dap";
     new Task({ type: "count", id, leader, helper, timePrecisionSeconds: 60 }).sendMeasurement(true);`,
  ],
};

async function size(contents, build = {}) {
  const code = await bundle({
    stdin: { contents, resolveDir: HERE, loader: "ts" },
    format: "esm",
    logLevel: "error",
    define: constants(build),
    plugins: plugins(build),
  });
  return [Buffer.byteLength(code), gzipSync(code, { level: 9 }).length];
}

function version(name) {
  const own = name.startsWith("deniable");
  const path = own ? join(ROOT, "package.json") : join(HERE, "node_modules", name, "package.json");
  return JSON.parse(readFileSync(path, "utf8")).version;
}

const text = (bytes) => bytes.toLocaleString("en");
console.log("| package | version | minified | gzipped, all | gzipped, least |");
console.log("| --- | --- | ---: | ---: | ---: |");
for (const [name, [entry, least, build]] of Object.entries(PACKAGES)) {
  const [minified, gzipped] = await size(`export * from ${JSON.stringify(entry)};
    export { default } from ${JSON.stringify(entry)};`, build).catch(() =>
    size(`export * from ${JSON.stringify(entry)};`, build),
  );
  const [, smallest] = await size(least, build);
  console.log(
    `| ${name} | ${version(name)} | ${text(minified)} | ${text(gzipped)} | ${text(smallest)} |`,
  );
}
