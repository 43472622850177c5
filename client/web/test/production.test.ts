import assert from "node:assert/strict";
import { test } from "node:test";
import { present, released, vectors } from "./support.ts";

test("a released build refuses whatever would reveal more than it declares", async () => {
  const { read } = await released();
  const { cases } = vectors("compiled");
  const grave =
    /^format$|^lifetime_epsilon$|\.(epsilon|lifetime_epsilon|memo_epsilon|longitudinal|reveals\.\w+)$/;
  let refused = 0;
  for (const { name, document, error } of cases) {
    if (!error) assert.ok(read(present(document)).metrics.size, name);
    // A missing or a needless key misleads nobody; what is there must hold.
    else if (/a value twice/.test(name) || (grave.test(error) && !/: no |^no cap$|unknown|is a text|that is true/.test(name))) {
      assert.throws(() => read(document), Error, name);
      refused += 1;
    }
  }
  assert.ok(refused > 25, `${refused} cases`);
});

test("a released build makes no metric of a mechanism that cannot be built, or whose odds are unknown", async () => {
  const { read } = await released();
  for (const { name, document, error } of vectors("compiled").cases)
    if (error?.endsWith(".parameters") && !/too many|: no (parameters|salt)|bound|weights/.test(name))
      assert.throws(() => read(document), Error, name);
});

test("the small bundle takes lists of values without memos, and refuses every other metric", async () => {
  const { read } = await released("closed");
  const taken = new Set<string>();
  for (const { name, document, error } of vectors("compiled").cases)
    for (const [metric, fields] of Object.entries<any>(
      error || document.segments ? {} : document.metrics,
    )) {
      const alone = { ...document, metrics: { [metric]: fields } };
      const small = /^(boolean|category)$/.test(fields.type) && fields.mechanism === "subset_selection";
      if (!small) assert.throws(() => read(alone), Error, `${name}: ${metric}`);
      else assert.equal(read(alone).metrics.get(metric).scheme, fields.scheme);
      taken.add(`${small} ${fields.type}`);
    }
  assert.deepEqual([...taken].sort(), [
    "false category",
    "false number",
    "false string",
    "true boolean",
    "true category",
  ]);
});
