// Build each entry as an ES module and as one file for a <script> tag, which sets `deniable`.
import { build } from "esbuild";
import { BUNDLES, OPTIONS } from "./bundles.mjs";

for (const { entry, name } of BUNDLES) {
  for (const [format, suffix] of [["esm", "js"], ["iife", "min.js"]]) {
    await build({
      ...OPTIONS,
      entryPoints: [entry],
      format,
      globalName: format === "iife" ? "deniable" : undefined,
      outfile: `dist/${name}.${suffix}`,
      write: true,
    });
  }
}
