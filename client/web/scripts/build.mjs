// Build each entry as an ES module and as one file for a <script> tag, which sets `deniable`.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, BUNDLES, ROOT } from "./bundles.mjs";

mkdirSync(join(ROOT, "dist"), { recursive: true });
for (const { entry, name } of BUNDLES) {
  const esm = await bundle({ entryPoints: [entry], format: "esm" });
  writeFileSync(join(ROOT, `dist/${name}.js`), esm);
  const script = await bundle({ entryPoints: [entry], format: "iife", globalName: "deniable" });
  writeFileSync(join(ROOT, `dist/${name}.min.js`), script);
}
