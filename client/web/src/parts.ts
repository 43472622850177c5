// What a client is made of: an entry, and parts that are loaded where a registry or an option needs them.
import type { Builder } from "./mechanisms/base.ts";
import type { Type } from "./metric.ts";
import type { joint } from "./parts/joint.ts";
import { shared } from "./shared.ts";
import type { Transport } from "./transport.ts";
import type { CompiledMetric, CompiledRegistry } from "./values.ts";

type Table<T> = Readonly<Record<string, T>>;

/** The types and mechanisms of a client, by name; and what only some registries need. */
export interface Parts {
  readonly types: Table<Type>;
  readonly mechanisms: Table<Builder>;
  /** Segments, pairs and discovery. */
  readonly joint?: Joint | undefined;
  /** Sends in two hops, in place of ./transport.ts. */
  readonly oblivious?: Transport | undefined;
}

export type Joint = typeof joint;

export type PartName = "joint" | "memos" | "numbers" | "oblivious" | "rappor" | "retention";

/** A file of src/parts. */
export interface Part {
  readonly default: Partial<Parts>;
  receive(given: typeof shared): void;
}

/** An entry: what it has at once, and how it loads the rest. */
export interface Entry extends Parts {
  readonly load?: Readonly<Record<PartName, () => Promise<Part>>>;
}

/** What a page may bring along, so that nothing has to be loaded. */
export type Brought = Readonly<Partial<Record<PartName, Part>>>;

/** The parts of a client for a compiled registry: those that it needs beside its entry are loaded,
 * unless the page brings them along. `relay`: whether it sends in two hops. */
export async function gather(entry: Entry, document: CompiledRegistry, relay: boolean): Promise<Parts> {
  const needed = new Set(Object.values(document.metrics).map((metric) => partFor(entry, metric)));
  if (document.segments) needed.add("joint");
  if (relay) needed.add("oblivious");
  const names = [...needed].filter((name) => name !== undefined);
  const found = await Promise.all(names.map(async (name) => document.parts?.[name] ?? entry.load![name]()));
  for (const part of found) part.receive(shared);
  return found.reduce<Parts>((all, part) => assembled(all, part.default), entry);
}

/** The part that a metric needs, if any. */
function partFor({ mechanisms }: Entry, { type, mechanism = "", longitudinal }: CompiledMetric): PartName | undefined {
  if (/pair|discovery/.test(type)) return "joint";
  if (type === "retention") return type;
  if (mechanism in mechanisms) return undefined;
  if (/rappor/.test(mechanism)) return "rappor";
  return longitudinal === "memoize" ? "memos" : "numbers";
}

/** Parts and one more. */
export const assembled = (parts: Parts, { types, mechanisms, ...rest }: Partial<Parts>): Parts => ({
  ...parts,
  ...rest,
  types: { ...parts.types, ...types },
  mechanisms: { ...parts.mechanisms, ...mechanisms },
});
