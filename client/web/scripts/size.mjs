// The size of each entry, minified and gzipped; fails where one is above its limit.
// --detail: how much each source file takes, minified.
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { BUNDLES, OPTIONS } from "./bundles.mjs";

const detail = process.argv.includes("--detail");
for (const { entry, name, limit } of BUNDLES) {
  const result = await build({ ...OPTIONS, entryPoints: [entry], format: "esm", metafile: true, outfile: "out.js" });
  const [{ contents }] = result.outputFiles;
  const size = gzipSync(contents, { level: 9 }).length;
  console.log(`${name}: ${contents.length} bytes minified, ${size} gzipped, limit ${limit}`);
  if (detail) {
    const [output] = Object.values(result.metafile.outputs);
    for (const [path, { bytesInOutput }] of Object.entries(output.inputs))
      console.log(`  ${String(bytesInOutput).padStart(6)}  ${path}`);
  }
  if (size > limit) process.exitCode = 1;
}
