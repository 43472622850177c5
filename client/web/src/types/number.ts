import { refuse } from "../mechanisms/base.ts";
import type { Type } from "../metric.ts";
import { readNumber } from "../number_text.ts";

/** The number, or the largest finite one of its sign. */
function limited(number: number): number {
  return Math.min(Math.max(number, -Number.MAX_VALUE), Number.MAX_VALUE);
}

/** A number with a lower and an upper bound. Each step is rounded once, in the order of records. */
export const number: Type = {
  normalize(value) {
    if (typeof value !== "number") refuse("takes numbers");
    if (Number.isNaN(value)) refuse("takes no NaN; record a fixed number in its place");
    return String(limited(value));
  },
  begin: (text, aggregate) => (aggregate === "count" ? "1" : text),
  merge(value, text, records, aggregate) {
    if (aggregate === "first" || aggregate === "any") return value;
    if (aggregate === "count") return String(records);
    const [before, added] = [readNumber(value), Number(text)];
    // The metric became a number inside the window: it begins again.
    if (before === undefined) return text;
    return String(
      aggregate === "max"
        ? Math.max(before, added)
        : aggregate === "min"
          ? Math.min(before, added)
          : aggregate === "sum"
            ? limited(before + added)
            : limited(before + limited(added - before) / records),
    );
  },
  item(text, { position }) {
    const number = readNumber(text);
    return number === undefined ? undefined : position!(number);
  },
  suits: ({ position }) => !!position,
};
