// Build each entry as an ES module, the same for development, and as one file for a <script> tag,
// which sets `deniable` (`deniableOwner` for the owner's page).
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bundle, BUNDLES, constants, plugins, ROOT } from "./bundles.mjs";

mkdirSync(join(ROOT, "dist"), { recursive: true });
for (const { entry, name, full, joint, hops, globalName = "deniable" } of BUNDLES) {
  const changes = plugins({ hops });
  const define = constants({ full, joint, hops });
  const esm = await bundle({ entryPoints: [entry], plugins: changes, format: "esm", define });
  writeFileSync(join(ROOT, `dist/${name}.js`), esm);
  const development = await bundle({
    entryPoints: [entry],
    plugins: changes,
    format: "esm",
    define: constants({ full, joint, hops, development: true }),
  });
  writeFileSync(join(ROOT, `dist/${name}.development.js`), development);
  const explained = await bundle({
    entryPoints: [entry],
    plugins: changes,
    format: "iife",
    globalName,
    define: constants({ full, joint, hops, development: true }),
  });
  writeFileSync(join(ROOT, `dist/${name}.development.min.js`), explained);
  const script = await bundle({ entryPoints: [entry], plugins: changes, format: "iife", globalName, define });
  writeFileSync(join(ROOT, `dist/${name}.min.js`), script);
}
