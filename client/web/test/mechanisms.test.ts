import assert from "node:assert/strict";
import { test } from "node:test";
import type { Odds } from "../src/exact.ts";
import { type Memoizing, recall } from "../src/mechanisms/memo.ts";
import { full } from "../src/parts/full.ts";
import { fromHex, on, vectors } from "./support.ts";

/** Whether the largest of some odds is the fraction "a/b". */
function equals(all: readonly Odds[], fraction: string): boolean {
  const [a, b = 1n] = fraction.split("/").map(BigInt) as [bigint, bigint?];
  const orders = all.map(([numerator, denominator, power]) => {
    const difference = numerator ** BigInt(power) * b - a * denominator ** BigInt(power);
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  });
  return Math.max(...orders) === 0;
}

for (const [name, build] of Object.entries(full.mechanisms)) {
  test(`${name}: published parameters have the published odds, and bad ones are refused`, () => {
    const cases = vectors(name).mechanisms;
    assert.ok(cases.length);
    for (const { parameters, error, odds, lifetime_odds, fresh_odds } of cases) {
      if (error) {
        assert.throws(() => build(parameters), Error, JSON.stringify(parameters));
        continue;
      }
      const mechanism = build(parameters);
      assert.ok(equals(mechanism.odds, odds), JSON.stringify(parameters));
      assert.equal(!!mechanism.memoOdds, lifetime_odds !== undefined);
      if (lifetime_odds) {
        assert.ok(equals(mechanism.memoOdds!, lifetime_odds));
        assert.ok(equals(mechanism.freshOdds!, fresh_odds));
      }
    }
  });
}

test("a key gives the row and the memo of the vectors", () => {
  for (const { key, scheme, fingerprint, item, row, memo } of vectors("memory").memos) {
    const mechanism: unknown = full.mechanisms[scheme.mechanism]!(scheme.parameters);
    const place = scheme.values && typeof item === "string" ? scheme.values.indexOf(item) : item;
    const recalled = recall(
      mechanism as Memoizing<Uint8Array | number>,
      place,
      fromHex(key),
      fingerprint,
    );
    const number =
      typeof recalled.memo === "number"
        ? BigInt(recalled.memo)
        : on(recalled.memo).reduce((sum, bit) => sum + (1n << BigInt(bit)), 0n);
    assert.deepEqual([recalled.row, number.toString(16)], [row, memo], scheme.mechanism);
  }
});
