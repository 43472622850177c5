import { refuse } from "../mechanisms/base.ts";
import type { Type } from "../metric.ts";

/** The joint of two metrics: its values are the cells, by their numbers. */
export const pair: Type = {
  normalize: () =>
    refuse("is a pair, which is not recorded: record its two metrics, and they are joined when the window closes"),
  item: (text) => +text,
  suits: ({ size }) => !!size,
};
