// Where the state is kept: IndexedDB in a browser, or an app's own store.

/** Keeps one text. */
export interface Store {
  /**
   * One atomic transaction: `change` gets the stored text, and returns the one to store in its
   * place; if it throws, the old one stays. Only one transaction runs at a time, in all tabs and processes.
   * If nothing is stored, `change` gets `initial`; without `initial` it is not called.
   * The promise is fulfilled when the text is safe, and rejected if nothing was changed.
   */
  transact(change: (text: unknown) => string, initial?: string): Promise<void>;
}

const STATE = "state";

/** The store of an app in this browser; `lost` is called when the browser or a person deletes it. */
export function browserStore(app: string, lost: () => void): Store {
  let opening: Promise<IDBDatabase | undefined> | undefined;

  const open = (initial: string | undefined) =>
    new Promise<IDBDatabase | undefined>((resolve, reject) => {
      const request = indexedDB.open(`deniable:${app}`, 1);
      let missing = false;
      request.onupgradeneeded = () => {
        missing = !initial;
        // Nothing is left behind where nothing was recorded.
        if (missing) request.transaction!.abort();
        // In this transaction, so that a database without a state is always a damaged one.
        else request.result.createObjectStore(STATE).put(initial, STATE);
      };
      request.onsuccess = () => {
        const database = request.result;
        // A database that is deleted is never opened again by this page: its ledger is gone.
        database.onversionchange = database.onclose = () => {
          database.close();
          lost();
        };
        resolve(database);
      };
      request.onerror = (event) => {
        // Firefox would report it to the page.
        event.preventDefault();
        if (missing) resolve(undefined);
        else reject(request.error!);
      };
    });

  return {
    async transact(change, initial) {
      let database: IDBDatabase | undefined;
      while (!(database = await (opening ??= open(initial)))) {
        opening = undefined;
        if (!initial) return;
      }
      const transaction = database.transaction(STATE, "readwrite", { durability: "strict" });
      await new Promise<void>((resolve, reject) => {
        const states = transaction.objectStore(STATE);
        let failure: unknown;
        const read = states.get(STATE);
        read.onsuccess = () => {
          try {
            states.put(change(read.result), STATE);
          } catch (error) {
            failure = error;
            transaction.abort();
          }
        };
        transaction.oncomplete = () => resolve();
        transaction.onabort = () => reject((failure ?? transaction.error));
      });
    },
  };
}
