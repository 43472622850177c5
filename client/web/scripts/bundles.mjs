// What is built, and how: the same for a release, the sizes and the benchmarks.
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { minify } from "terser";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The entries and their limits in bytes, minified and gzipped. */
export const BUNDLES = [
  { entry: "src/entries/closed.ts", name: "deniable.closed", full: false, limit: 6 * 1024 },
  { entry: "src/entries/all.ts", name: "deniable", limit: 10 * 1024 },
  { entry: "src/entries/joint.ts", name: "deniable.joint", joint: true, limit: 12.5 * 1024 },
  { entry: "src/entries/oblivious.ts", name: "deniable.oblivious", joint: true, hops: true, limit: 14 * 1024 },
  { entry: "src/entries/owner.ts", name: "deniable.owner", globalName: "deniableOwner", limit: 3 * 1024 },
  { entry: "src/entries/memory.ts", name: "deniable.memory", globalName: "deniableMemory", limit: 512 },
];

/** The constants of a build, which src/globals.d.ts explains. */
export const constants = ({ full = true, joint = false, hops = false, development = false }) => ({
  DEVELOPMENT: String(development),
  FULL: String(full),
  JOINT: String(joint),
  HOPS: String(hops),
});

/** Puts src/oblivious/transport.ts in the place of the client's own transport. */
const TWO_HOPS = {
  name: "two hops",
  setup(builder) {
    builder.onResolve({ filter: /^\.\/transport\.ts$/ }, ({ importer }) =>
      importer.endsWith("client.ts") ? { path: join(ROOT, "src/oblivious/transport.ts") } : undefined,
    );
  },
};

/** What esbuild is to change in a bundle. */
export const plugins = ({ hops = false }) => (hops ? [TWO_HOPS] : []);

/** esbuild's options; `bundle` is what uses them. */
export const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  define: constants({}),
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  write: false,
};

const INTERNAL =
  /^(standsIn|suits|randomize|draw|odds|memoOdds|freshOdds|undeclared|refused|trouble|retryAfter|lifetimeEpsilon|begin|merge|item|width|position|wholes|entry|memoize|respond|channel|types|mechanisms|place|looksBack)$/;

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
    compress: {
      passes: 5,
      keep_fargs: false,
      inline: 1,
      hoist_funs: true,
      pure_getters: true,
      // Nothing here changes what is built in. Not `unsafe_math`: numbers must stay exact.
      unsafe: true,
      unsafe_arrows: true,
      unsafe_methods: true,
    },
    // Properties that neither a page nor JSON ever sees.
    mangle: { properties: { regex: INTERNAL, builtins: true } },
    // A page may not say that its scripts are UTF-8.
    format: { comments: false, ascii_only: true },
  });
  return code;
}
