// Retention. It has what it shares with memos.ts once more.
import { memoizedRetention } from "../mechanisms/memoized_retention.ts";
import type { Parts } from "../parts.ts";
import { retention } from "../types/retention.ts";

export { receive } from "../shared.ts";

export default {
  types: { retention },
  mechanisms: { memoized_retention: memoizedRetention },
} satisfies Partial<Parts>;
