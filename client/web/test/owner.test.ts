import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, ownerPage } from "../src/parts/owner.ts";
import { DAY, World, booleanMetric, categoryMetric, document } from "./world.ts";

type Any = any;

const report = (metric: string, scheme: string, columns: unknown): Any => ({
  metric, scheme, columns, window: "2027-01-04", row: 0, ready: 0, status: "sent",
});

/** A report in words has the exact shares: what it would send if it were true, and if not. */
test("words", () => {
  const metrics = document({
    metrics: {
      dark: booleanMetric(),
      pair: categoryMetric({ parameters: { size: 4, k: 2, threshold: 2 ** 52 } }),
      far: categoryMetric({ mechanism: "projective_geometry", reveals: { report: 1, memo: null, fresh: null } }),
      kept: categoryMetric({ mechanism: "memoized_subset_selection", reveals: { report: 1, memo: 2, fresh: 1.5 } }),
    },
  });
  assert.equal(
    describe(report("dark", "5a9aecab0f02", 1), metrics),
    "your device said “false”; it would say so 73.1 % of the time if that were true and 26.9 % if it were not",
  );
  // Of four values, two named: half of the time the true one is among them, in one of three pairs.
  const pair = describe(report("pair", "8f4d9177a857", [0, 3]), metrics);
  assert.match(pair, /named “firefox” and “other”; it would name exactly these 16.7 % .* and 16.7 % if none were$/);
  assert.equal(describe(report("pair", "8f4d9177a857", "CQ"), metrics), pair);
  assert.match(describe(report("far", "8f4d9177a857", 7), metrics), /the number 7; .* at most 2.72 times/);
  assert.match(describe(report("kept", "8f4d9177a857", [1, 2]), metrics), /marked 2 numbers; .* at most 7.39 times/);
  for (const gone of [report("dark", "0".repeat(12), 1), report("constructor", "0".repeat(12), 1)])
    assert.match(describe(gone, metrics), /no longer uses/);
});

/** The page shows what was sent, what waits and what the ledger allows; it holds no script or
 * style, and nothing that the app or a server wrote is markup in it. */
test("page", async () => {
  const world = new World();
  const metrics = document({
    metrics: {
      later: booleanMetric({ description: "<b>Later</b>" }),
      now: booleanMetric({ answer: "at_once", lifetime_epsilon: 3 }),
    },
  });
  const client = world.client({}, metrics);
  const empty = await ownerPage(client, metrics);
  assert.match(empty, /Nothing waits to be sent.*Nothing has been reported yet.*Nothing has been reported yet/s);
  const failed = await ownerPage({ status: "failed", sent: () => Promise.resolve([]), accounts: () => Promise.resolve([]) }, metrics);
  assert.equal(failed.split("This cannot be read.").length, 4);
  assert.doesNotMatch(failed, /Nothing (waits|has)/);
  client.record("later", true);
  client.record("now", true);
  await client.flush();
  const page = await ownerPage(client, metrics, { app: "A<i>" });
  assert.match(page, /Reporting is on: A&#60;i&#62; reports/);
  assert.match(page, /1 true value waits/);
  assert.match(page, /now, 2027-01-04; sent/);
  assert.match(page, /<td>1<\/td><td>2<\/td><td>73.2<\/td>/);
  world.now += DAY;
  await client.flush();
  const next = await ownerPage(client, metrics);
  assert.match(next, /&#60;b&#62;Later/);
  assert.doesNotMatch(next, /<b>|<script|<style|style=| on[a-z]+=/);
  await client.optOut();
  const off = await ownerPage(client, metrics);
  assert.match(off, /Reporting is off.*switch reporting off at any time/s);
  assert.doesNotMatch(off, /reports go to|Questions about/);
  const named = { ...metrics, recipient: "Acme <Ltd>", contact: "privacy@acme.example" };
  const told = await ownerPage(world.client({ name: "named" } as Any, named), named);
  assert.match(told, /go to Acme &#60;Ltd&#62;\..*data: privacy@acme.example/s);
});
