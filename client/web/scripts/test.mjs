// Bundle the tests with esbuild and run them with node's own runner. Arguments: file names to run.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { constants, ROOT } from "./bundles.mjs";

const asked = process.argv.slice(2).filter((each) => !each.startsWith("-"));
const options = process.argv.slice(2).filter((each) => each.startsWith("-"));
const names = readdirSync(join(ROOT, "test"))
  .filter((name) => name.endsWith(".test.ts"))
  .filter((name) => !asked.length || asked.some((each) => name.includes(each)));
if (!names.length) throw new Error(`there is no test file called ${asked.join(" or ")}`);
rmSync(join(ROOT, "build/test"), { recursive: true, force: true });
await build({
  absWorkingDir: ROOT,
  entryPoints: names.map((name) => `test/${name}`),
  outdir: "build/test",
  outExtension: { ".js": ".mjs" },
  bundle: true,
  define: constants({ development: true }),
  platform: "node",
  format: "esm",
  target: "node20",
  packages: "external",
  sourcemap: "inline",
});
const files = names.map((name) => join("build/test", name.replace(/\.ts$/, ".mjs")));
const done = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...options, ...files], {
  cwd: ROOT,
  stdio: "inherit",
});
process.exitCode = done.status ?? 1;
