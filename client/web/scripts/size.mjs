// The size of each entry, minified and gzipped; fails where one is above its limit.
// --detail: how much of it each source file takes, before gzip.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { bundle, BUNDLES, constants, OPTIONS } from "./bundles.mjs";

const detail = process.argv.includes("--detail");
for (const { entry, name, limit, full } of BUNDLES) {
  const define = constants({ full });
  const code = await bundle({ entryPoints: [entry], format: "esm", define });
  const size = gzipSync(code, { level: 9 }).length;
  console.log(`${name}: ${code.length} bytes minified, ${size} gzipped, limit ${limit}`);
  if (detail) {
    const { metafile } = await build({
      ...OPTIONS,
      entryPoints: [entry],
      format: "esm",
      define,
      minify: true,
      metafile: true,
      outfile: "out.js",
    });
    const [output] = Object.values(metafile.outputs);
    for (const [path, { bytesInOutput }] of Object.entries(output.inputs))
      console.log(`  ${String(bytesInOutput).padStart(6)}  ${path}`);
  }
  if (size > limit) process.exitCode = 1;
}
