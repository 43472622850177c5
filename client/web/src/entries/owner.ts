export { describe, ownerPage } from "../owner.ts";
export type { DescribedRegistry, OwnerPageOptions } from "../owner.ts";
