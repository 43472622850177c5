// Prints reports of a discovery as the SDK of web pages makes them: a line of row and column for each.
// Arguments: client/web, a compiled registry, a metric, and a JSON object of texts and their devices.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [web, registry, name, crowd] = process.argv.slice(2);
const { bundle, constants } = await import(pathToFileURL(join(web, "scripts/bundles.mjs")).href);
const contents = `
    import { systemSource } from "./src/bits.ts";
    import { jointParts } from "./src/parts_joint.ts";
    import { readRegistry } from "./src/registry.ts";
    export const reports = (document, name, crowd) => {
      const metric = readRegistry(document, jointParts).metrics.get(name);
      const source = systemSource();
      return Object.entries(crowd).flatMap(([text, devices]) =>
        Array.from({ length: devices }, () => {
          const { row, columns } = metric.report(metric.normalize(text), source, null);
          return [row, columns];
        }),
      );
    };`;
const code = await bundle({
  stdin: { contents, resolveDir: web },
  format: "esm",
  define: constants({ joint: true }),
});
const path = `${registry}.mjs`;
writeFileSync(path, code);
const { reports } = await import(pathToFileURL(path).href);
console.log(JSON.stringify(reports(JSON.parse(readFileSync(registry, "utf8")), name, JSON.parse(crowd))));
