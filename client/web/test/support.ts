import { readFileSync } from "node:fs";
import { byteSource } from "../src/bits.ts";

/** A file of test vectors. */
export function vectors(name: string): any {
  return JSON.parse(
    readFileSync(new URL(`../../../vectors/${name}.json`, import.meta.url), "utf8"),
  );
}

export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (each) => parseInt(each, 16));
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
