import assert from "node:assert/strict";
import { test } from "node:test";
import type { Odds } from "../src/exact.ts";
import { allParts } from "../src/parts_all.ts";
import { vectors } from "./support.ts";

/** Whether the largest of some odds is the fraction "a/b". */
function equals(all: readonly Odds[], fraction: string): boolean {
  const [a, b = 1n] = fraction.split("/").map(BigInt) as [bigint, bigint?];
  const orders = all.map(([numerator, denominator, power]) => {
    const difference = numerator ** BigInt(power) * b - a * denominator ** BigInt(power);
    return difference < 0n ? -1 : difference > 0n ? 1 : 0;
  });
  return Math.max(...orders) === 0;
}

for (const [name, build] of Object.entries(allParts.mechanisms)) {
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
