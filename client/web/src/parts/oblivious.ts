// Two hops: batches go through a relay that cannot read them.
import { beacon, post, prepare, route } from "../oblivious/transport.ts";

/** What sends batches in place of ../transport.ts. */
export const oblivious = { beacon, post, prepare, route };

export default { oblivious };
