import { readFileSync } from "node:fs";
import { bundle, constants } from "../scripts/bundles.mjs";
import { type Source, sourceOf } from "../src/bits.ts";

/** The registry's reader as it is released, without the checks of development builds. */
export async function released(entry: "full" | "closed" = "full"): Promise<any> {
  const contents = `
    import { ${entry} as entry } from "./src/parts/${entry}.ts";
    import { assembled } from "./src/parts.ts";
    import joint from "./src/parts/joint.ts";
    import memos from "./src/parts/memos.ts";
    import { readRegistry } from "./src/registry.ts";
    const parts = ${entry === "full"} ? [joint, memos].reduce(assembled, entry) : entry;
    export const read = (document) => readRegistry(document, parts);`;
  const code = await bundle({
    stdin: { contents, resolveDir: process.cwd() },
    format: "esm",
    define: constants({ full: entry === "full" }),
  });
  return import(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** A file of test vectors. */
export function vectors(name: string): any {
  return JSON.parse(
    readFileSync(new URL(`../../../vectors/${name}.json`, import.meta.url), "utf8"),
  );
}

export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (each) => parseInt(each, 16));
}

/** A source that gives these bytes and then throws, and says how many it has given. */
export function byteSource(stream: Uint8Array): Source & { used(): number } {
  let used = 0;
  const source = sourceOf((count) => {
    if (used + count > stream.length) throw new RangeError("the stream of random bytes is used up");
    return stream.slice(used, (used += count));
  });
  return { ...source, used: () => used };
}

/** What a function draws from a stream of bytes in hexadecimal, all of which it must use. */
export function drawn<T>(hex: string, draw: (source: ReturnType<typeof byteSource>) => T): T {
  const stream = fromHex(hex);
  const source = byteSource(stream);
  const result = draw(source);
  if (source.used() !== stream.length)
    throw new Error(`${source.used()} of ${stream.length} bytes were used`);
  return result;
}

/** The positions of the flags that are 1. */
export function on(flags: Uint8Array): number[] {
  return [...flags.keys()].filter((each) => flags[each]);
}

/** Flags with 1 at these positions. */
export function flagsOf(size: number, positions: readonly number[]): Uint8Array {
  const flags = new Uint8Array(size);
  for (const each of positions) flags[each] = 1;
  return flags;
}

/** The next draw of any number of bits, as an SDK with large integers takes it. */
export function bitsOf(source: Source, count: number): bigint {
  const bytes = source.bytes((count + 7) >> 3);
  return bytes.reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n) >> BigInt(-count & 7);
}

/** What the Python SDK knows and this one does not: no metric has them unless it names them. */
export const ABSENT = new Set([
  "hadamard_response",
  "count_mean_sketch",
  "hadamard_count_mean_sketch",
  "unary_encoding",
  "cohort_local_hashing",
]);

/** A compiled registry without metrics whose mechanism this SDK does not have. */
export function present(document: any, error = ""): any {
  if (typeof document?.metrics !== "object") return document;
  const metrics = Object.entries<any>(document.metrics).filter(
    ([name, metric]) => error.includes(`.${name}.`) || !ABSENT.has(metric?.mechanism),
  );
  return { ...document, metrics: Object.fromEntries(metrics) };
}
