import { refuse } from "../mechanisms/base.ts";
import { isValue, normalForm, type Type } from "../metric.ts";

/** Any string: its candidates are named when it is estimated. */
export const string: Type = {
  takes: [],
  aggregates: ["last", "first", "any"],
  normalize(value) {
    if (typeof value !== "string") refuse("takes text");
    const text = normalForm(value);
    if (!isValue(text)) refuse("takes 1 to 1024 bytes without control characters, not blank");
    return text;
  },
  item: (text) => text,
  suits: ({ size }) => size === null,
};
