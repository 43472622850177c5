import { type Item, type Mechanism, refuse } from "../mechanisms/base.ts";
import { type Declared, normalForm, type Places, type Type } from "../metric.ts";

/** What types have in common whose values are listed: mechanisms know them by their places. */
const closed = {
  takes: ["values"],
  item(text: string, { other }: Declared, places: Places, { size }: Mechanism): Item | undefined {
    // An app may be upgraded inside a window, and the value leave the list.
    const known = places.has(text) ? text : other;
    if (known === null) return undefined;
    return size === null ? known : places.get(known);
  },
  suits: ({ size }: Mechanism, places: Places): boolean => size === null || size === places.size,
} satisfies Partial<Type>;

/** True or false, kept as the texts "true" and "false". */
export const boolean: Type = {
  ...closed,
  aggregates: ["last", "first", "any", "max"],
  suits: (mechanism, places) =>
    closed.suits(mechanism, places) && [...places.keys()].join() === "true,false",
  normalize(value) {
    if (typeof value !== "boolean") refuse("takes true or false");
    return String(value);
  },
  merge: (value, text, _, aggregate) => (aggregate === "max" && text === "true" ? text : value),
};

/** One of the listed values; any other is `other`, if that is declared, and refused if not. */
export const category: Type = {
  ...closed,
  takes: ["values", "other"],
  aggregates: ["last", "first", "any"],
  normalize(value, { other }, places) {
    if (typeof value !== "string") refuse("takes text");
    const text = normalForm(value);
    if (places.has(text)) return text;
    // The message must not repeat the value: error messages end up in logs.
    return other ?? refuse('takes its declared values; add this one, or "other"');
  },
};
