// What is built, and how: the same for a release, the sizes and the benchmarks.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { minify } from "terser";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The entries and their limits in bytes, minified and gzipped. */
export const BUNDLES = [
  { entry: "src/entries/closed.ts", name: "deniable.closed", limit: 6 * 1024 },
  { entry: "src/entries/all.ts", name: "deniable", limit: 10 * 1024 },
  { entry: "src/entries/owner.ts", name: "deniable.owner", globalName: "deniableOwner", limit: 3 * 1024 },
  { entry: "src/entries/memory.ts", name: "deniable.memory", globalName: "deniableMemory", limit: 512 },
];

/** esbuild's options; `bundle` is what uses them. */
export const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  define: { DEVELOPMENT: "false" },
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  write: false,
};

/**
 * The text of a bundle, minified, for these options of esbuild beside OPTIONS (an entry, a format).
 * esbuild joins the modules; terser's output is about 5 % smaller than esbuild's own.
 */
export async function bundle(options) {
  const small = { minifySyntax: true, minifyWhitespace: true };
  const result = await build({ ...OPTIONS, ...small, ...options, outfile: "out.js" });
  const joined = result.outputFiles.find(({ path }) => path.endsWith(".js")).text;
  const { code } = await minify(joined, {
    module: options.format === "esm",
    // A script keeps its one name.
    toplevel: options.format === "esm",
    ecma: 2020,
    compress: { passes: 3, inline: 1, hoist_funs: true, unsafe_arrows: true, unsafe_methods: true, pure_getters: true },
    format: { comments: false },
  });
  return code;
}
