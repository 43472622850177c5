// A store for servers, and for tests.
import type { Store } from "./store.ts";

/** A store that lasts as long as its process. */
export function memoryStore(): Store {
  let text: string | undefined;
  return {
    // Async: an error of `change` becomes a rejection.
    // eslint-disable-next-line @typescript-eslint/require-await
    async transact(change, initial) {
      const found = text ?? initial;
      if (found !== undefined) text = change(found);
    },
  };
}
