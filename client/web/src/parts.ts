// What a client is made of: an entry, and parts that are loaded where a registry or an option needs them.
import type { Builder } from "./mechanisms/base.ts";
import type { Registry, Type } from "./metric.ts";
import jointPart, { type joint } from "./parts/joint.ts";
import memosPart from "./parts/memos.ts";
import obliviousPart, { type oblivious } from "./parts/oblivious.ts";
import type { CompiledRegistry } from "./values.ts";

type Table<T> = Readonly<Record<string, T>>;

/** The types and mechanisms of a client, by name; and what only some registries need. */
export interface Parts {
  readonly types: Table<Type>;
  readonly mechanisms: Table<Builder>;
  /** Segments, pairs, discovery and retention. */
  readonly joint?: typeof joint | undefined;
  /** Sends in two hops. */
  readonly oblivious?: typeof oblivious | undefined;
}

/** A registry and what reads it, if it has segments, pairs, discoveries or retentions. */
export interface ReadRegistry extends Registry {
  readonly joint?: typeof joint | undefined;
}

export type PartName = "joint" | "memos" | "oblivious";

/** A file of src/parts. */
export interface Part {
  readonly default: Partial<Parts>;
}

/** An entry: what it has at once, and how it loads the rest. */
export interface Entry extends Parts {
  readonly load?: Readonly<Record<PartName, () => Promise<Part>>>;
}

/** The parts of a client for a compiled registry: those that it needs beside its entry are loaded,
 * unless the page brings them along. `relay`: whether it sends in two hops. */
export async function gather(entry: Entry, document: CompiledRegistry, relay: boolean): Promise<Parts> {
  const metrics = Object.values(document.metrics);
  const needed: Record<PartName, boolean> = {
    joint: !!document.segments || metrics.some(({ type }) => !(type in entry.types)),
    memos: metrics.some(
      ({ longitudinal, mechanism }) =>
        (longitudinal === "memoize" || mechanism === "one_time_rappor") && !(mechanism! in entry.mechanisms),
    ),
    oblivious: relay,
  };
  const names = (Object.keys(needed) as PartName[]).filter((name) => needed[name]);
  // What the page brings along need not be loaded.
  const brought: Partial<Record<PartName, Part>> = document.parts ?? {};
  const found = await Promise.all(names.map(async (name) => brought[name] ?? entry.load![name]()));
  return found.reduce<Parts>((all, part) => assembled(all, part.default), entry);
}

/** Parts and one more. */
export const assembled = (parts: Parts, { types, mechanisms, ...rest }: Partial<Parts>): Parts => ({
  ...parts,
  ...rest,
  types: { ...parts.types, ...types },
  mechanisms: { ...parts.mechanisms, ...mechanisms },
});

/** An entry with all parts. Development builds have them at once, so that they can name a mistake in
 * the call that makes it. */
export const withParts = (entry: Entry): Entry =>
  DEVELOPMENT
    ? [jointPart, memosPart, obliviousPart].reduce<Entry>(assembled, entry)
    : {
        ...entry,
        load: {
          joint: () => import("./parts/joint.ts"),
          memos: () => import("./parts/memos.ts"),
          oblivious: () => import("./parts/oblivious.ts"),
        },
      };
