import { refuse } from "../mechanisms/base.ts";
import { normalForm, type Type } from "../metric.ts";

/** What types have in common whose values are listed: mechanisms know them by their places. */
const closed: Omit<Type, "aggregates" | "normalize"> = {
  closed: true,
  item(text, { other }, places, { size }) {
    // An app may be upgraded inside a window, and the value leave the list.
    const known = places.has(text) ? text : other;
    if (known === null) return undefined;
    return size === null ? known : places.get(known);
  },
  suits: ({ size }, places) => size === null || size === places.size,
};

/** True or false, kept as the texts "true" and "false". */
export const boolean: Type = {
  ...closed,
  aggregates: ["last", "first", "any", "max"],
  normalize(value) {
    if (typeof value !== "boolean") refuse(`takes true or false, not ${typeof value}`);
    return String(value);
  },
  merge: (value, text, _, aggregate) => (aggregate === "max" && text === "true" ? text : value),
};

/** One of the listed values; any other is `other`, if that is declared, and refused if not. */
export const category: Type = {
  ...closed,
  aggregates: ["last", "first", "any"],
  normalize(value, { other }, places) {
    if (typeof value !== "string") refuse(`takes a string, not ${typeof value}`);
    const text = normalForm(value);
    if (places.has(text)) return text;
    // The message must not repeat the value: error messages end up in logs.
    return (
      other ??
      refuse('takes its declared values only; add this one, or an "other" that stands for the rest')
    );
  },
};
