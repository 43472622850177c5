// Build each entry and each part as an ES module, and as a file for a <script> tag; the entries for
// development too, where they have all parts. client/deniable/web gets the .js files.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, BUNDLES, constants, ROOT } from "./bundles.mjs";

rmSync(join(ROOT, "dist"), { recursive: true, force: true });
mkdirSync(join(ROOT, "dist"));
for (const { entry, name, full, part, globalName } of BUNDLES)
  for (const development of part ? [false] : [false, true]) {
    const define = constants({ full, development });
    const file = join(ROOT, `dist/${name}${development ? ".development" : ""}`);
    writeFileSync(`${file}.js`, await bundle({ entryPoints: [entry], format: "esm", define }));
    writeFileSync(`${file}.min.js`, await bundle({ entryPoints: [entry], format: "iife", globalName, define }));
  }
