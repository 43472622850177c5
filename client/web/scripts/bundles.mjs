// What is built, and how: the same for a release, the sizes and the benchmarks.
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { minify } from "terser";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The entries, and the parts that are loaded when they are needed: their limits in bytes, minified
 * and gzipped, and the name that a <script> sets. */
export const BUNDLES = [
  { entry: "src/entries/closed.ts", name: "deniable.closed", full: false, limit: 6200, globalName: "deniable" },
  { entry: "src/entries/memoized.ts", name: "deniable.memoized", limit: 9100, globalName: "deniable" },
  { entry: "src/entries/full.ts", name: "deniable", limit: 10_000, globalName: "deniable" },
  ...["joint", "memos", "oblivious"].map((part) => ({
    entry: `src/parts/${part}.ts`,
    name: `deniable.${part}`,
    part: true,
    limit: { joint: 2900, memos: 3900, oblivious: 2900 }[part],
    globalName: `deniable.parts.${part}`,
  })),
  { entry: "src/parts/owner.ts", name: "deniable.owner", part: true, limit: 3100, globalName: "deniableOwner" },
];

/** The constants of a build, which src/globals.d.ts explains. */
export const constants = ({ full = true, development = false } = {}) => ({
  DEVELOPMENT: String(development),
  FULL: String(full),
});

/** A part is a file beside the entry that loads it. */
const BESIDE = {
  name: "parts beside",
  setup(builder) {
    builder.onResolve({ filter: /\.ts$/ }, ({ kind, path }) =>
      kind === "dynamic-import" ? { path: `./deniable.${basename(path, ".ts")}.js`, external: true } : undefined,
    );
  },
};

/** esbuild's options; `bundle` is what uses them. */
export const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  define: constants(),
  plugins: [BESIDE],
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  write: false,
};

/** Properties that neither a page nor JSON ever sees, and their names in all files, which are shared. */
const INTERNAL =
  "standsIn suits randomize draw odds memoOdds freshOdds undeclared refused trouble retryAfter lifetimeEpsilon begin merge item width position wholes entry memoize respond channel types mechanisms place looksBack".split(
    " ",
  );
const SHORT = Object.fromEntries(INTERNAL.map((name, at) => [`$${name}`, "ABCDEFGHIJKLMNOPQRSTUVWXYZ$_"[at] ?? `_${at}`]));

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
    mangle: { properties: { regex: RegExp(`^(${INTERNAL.join("|")})$`), builtins: true } },
    nameCache: { props: { props: { ...SHORT } } },
    // A page may not say that its scripts are UTF-8.
    format: { comments: false, ascii_only: true },
  });
  return code;
}
