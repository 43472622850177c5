// Take the addresses out of package-lock.json: where packages come from is each machine's own
// setting, and npm writes the addresses of sponsors beside them. Argument: another folder than this.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./bundles.mjs";

const path = join(process.argv[2] ?? ROOT, "package-lock.json");
const lock = JSON.parse(readFileSync(path, "utf8"));
for (const each of Object.values(lock.packages)) {
  delete each.funding;
  delete each.resolved;
}
writeFileSync(path, `${JSON.stringify(lock, null, 2)}\n`);
