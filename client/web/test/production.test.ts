import assert from "node:assert/strict";
import { test } from "node:test";
import { bundle } from "../scripts/bundles.mjs";
import { vectors } from "./support.ts";

/** The registry's reader as it is released, without the checks of development builds. */
async function released(): Promise<any> {
  const contents = `
    import { allParts } from "./src/parts_all.ts";
    import { readRegistry } from "./src/registry.ts";
    export const read = (document) => readRegistry(document, allParts);`;
  const code = await bundle({ stdin: { contents, resolveDir: process.cwd() }, format: "esm" });
  return import(`data:text/javascript,${encodeURIComponent(code)}`);
}

test("a released build refuses whatever would reveal more than it declares", async () => {
  const { read } = await released();
  const { cases } = vectors("compiled");
  const grave =
    /^format$|^lifetime_epsilon$|\.(epsilon|lifetime_epsilon|memo_epsilon|longitudinal|reveals\.\w+)$/;
  let refused = 0;
  for (const { name, document, error } of cases) {
    if (!error) assert.ok(read(document).metrics.size, name);
    // A missing or a needless key misleads nobody; what is there must hold.
    else if (grave.test(error) && !/: no |^no cap$|unknown|is a text|that is true/.test(name)) {
      assert.throws(() => read(document), Error, name);
      refused += 1;
    }
  }
  assert.ok(refused > 25, `${refused} cases`);
});

test("a released build makes no metric of a mechanism that cannot be built", async () => {
  const { read } = await released();
  for (const { name, document, error } of vectors("compiled").cases)
    if (error?.endsWith(".parameters") && !/too many|: no parameters/.test(name))
      assert.throws(() => read(document), Error, name);
});
