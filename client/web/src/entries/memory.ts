export { memoryStore } from "../memory.ts";
export type { Store } from "../store.ts";
