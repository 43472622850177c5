import { refuse } from "../mechanisms/base.ts";
import type { Type } from "../metric.ts";

/** The joint of two metrics: its values are the cells, by their numbers. */
export const pair: Type = {
  normalize: () => refuse("takes no values"),
  item: (text) => +text,
  suits: ({ size }) => !!size,
};
