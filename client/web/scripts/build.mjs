// Build each entry as an ES module, the same for development, and as one file for a <script> tag,
// which sets `deniable` (`deniableOwner` for the owner's page).
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, BUNDLES, ROOT } from "./bundles.mjs";

mkdirSync(join(ROOT, "dist"), { recursive: true });
for (const { entry, name, globalName = "deniable" } of BUNDLES) {
  const esm = await bundle({ entryPoints: [entry], format: "esm" });
  writeFileSync(join(ROOT, `dist/${name}.js`), esm);
  const define = { DEVELOPMENT: "true" };
  const development = await bundle({ entryPoints: [entry], format: "esm", define });
  writeFileSync(join(ROOT, `dist/${name}.development.js`), development);
  const script = await bundle({ entryPoints: [entry], format: "iife", globalName });
  writeFileSync(join(ROOT, `dist/${name}.min.js`), script);
}
