// What is built, and how: the same options for a release, the sizes and the benchmarks.
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("..", import.meta.url));

/** The entries and their limits in bytes, minified and gzipped. */
export const BUNDLES = [
  { entry: "src/entries/closed.ts", name: "deniable.closed", limit: 6 * 1024 },
  { entry: "src/entries/all.ts", name: "deniable", limit: 10 * 1024 },
];

export const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  minify: true,
  target: "es2020",
  charset: "utf8",
  legalComments: "none",
  write: false,
};
