// Sends one report in two hops with the bundle of web pages. Arguments: a folder for the bundles, the
// compiled registry, and a JSON list of addresses of collector and relay and the gateway's identity.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [web, folder, metrics, cases] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(path).href);
const { bundle, constants, plugins } = await from(join(web, "scripts/bundles.mjs"));
for (const [name, hops] of [["oblivious", true], ["memory", false]]) {
  const entryPoints = [`src/entries/${name}.ts`];
  const define = constants({ joint: hops, hops });
  const code = await bundle({ entryPoints, format: "esm", define, plugins: plugins({ hops }) });
  writeFileSync(join(folder, `${name}.mjs`), code);
}
const { Client } = await from(join(folder, "oblivious.mjs"));
const { memoryStore } = await from(join(folder, "memory.mjs"));
const told = [];
for (const [endpoint, relay, gateway] of JSON.parse(cases)) {
  const options = { consent: true, endpoint, relay, gateway, state: memoryStore() };
  const client = new Client(JSON.parse(readFileSync(metrics, "utf8")), options);
  client.record("now", true);
  const sent = await client.flush();
  const [report] = await client.sent();
  told.push([sent, report?.status ?? client.status]);
}
console.log(JSON.stringify(told));
process.exit(0);
