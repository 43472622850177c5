import { refuse } from "../mechanisms/base.ts";
import { normalForm, type Type } from "../metric.ts";

/** The longest value in UTF-8. */
const MAX_BYTES = 1024;

/** Any string: its candidates are named when it is estimated. */
export const string: Type = {
  closed: false,
  aggregates: ["last", "first", "any"],
  normalize(value) {
    if (typeof value !== "string") refuse(`takes a string, not ${typeof value}`);
    const text = normalForm(value);
    if (/[\p{Cc}\p{Cs}]/u.test(text)) refuse("takes no control characters, nor halves of surrogate pairs");
    // U+FEFF is white space to JavaScript alone.
    if (!/[\S\ufeff]/.test(text) || new TextEncoder().encode(text).length > MAX_BYTES)
      refuse(`takes strings of 1 to ${MAX_BYTES} bytes that are not blank; clean them first`);
    return text;
  },
  item: (text) => text,
  suits: ({ size }) => size === null,
};
