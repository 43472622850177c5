import { refuse } from "../mechanisms/base.ts";
import { isValue, normalForm, type Type } from "../metric.ts";

/** Any string: its candidates are named when it is estimated. */
export const string: Type = {
  normalize(value) {
    const text = normalForm(value);
    return isValue(text)
      ? text
      : refuse("takes 1 to 1024 bytes without control characters, not blank");
  },
  item: (text) => text,
  suits: ({ size }) => size === null,
};
