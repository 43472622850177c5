// Two hops: batches go through a relay that cannot read them.
import { beacon, post, prepare, route } from "../oblivious/transport.ts";
import type { Parts } from "../parts.ts";

export default { oblivious: { beacon, post, prepare, route } } satisfies Partial<Parts>;
