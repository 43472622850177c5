import { type Item, type Mechanism, refuse } from "../mechanisms/base.ts";
import { normalForm, type Places, type Type } from "../metric.ts";

/** What types have in common whose values are listed: mechanisms know them by their places. */
const closed = {
  item(text: string, { size }: Mechanism, other: string | null, places: Places): Item | undefined {
    // An app may be upgraded inside a window, and the value leave the list.
    const known = places.has(text) ? text : (other ?? "");
    return FULL && size === null ? known || undefined : places.get(known);
  },
  suits: ({ size }: Mechanism): boolean => !FULL || size !== undefined,
};

/** True or false, kept as the texts "true" and "false". */
export const boolean: Type = {
  ...closed,
  normalize: (value) =>
    typeof value === "boolean" ? String(value) : refuse("takes true or false"),
  merge: (value, text, _, aggregate) => (aggregate === "max" && text === "true" ? text : value),
};

/** One of the listed values; any other is `other`, if that is declared, and refused if not. */
export const category: Type = {
  ...closed,
  normalize(value, other, places) {
    const text = normalForm(value);
    if (places.has(text)) return text;
    // The message must not repeat the value: error messages end up in logs.
    return other ?? refuse('takes its declared values; add this one, or "other"');
  },
};
