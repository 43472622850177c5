import assert from "node:assert/strict";
import { test } from "node:test";
import vectors from "../../vectors/windows.json";
import type { WindowKind } from "../src/metric.ts";
import { windowAt, windowEnd, windowStart } from "../src/windows.ts";

test("each label of the vectors has its start and end, and is given back by its moments", () => {
  for (const { label, kind, start, end } of vectors.valid) {
    assert.equal(windowStart(label), Date.parse(start) / 1000, label);
    assert.equal(windowEnd(label), Date.parse(end) / 1000, label);
    assert.equal(windowAt(kind as WindowKind, windowStart(label)), label);
    assert.equal(windowAt(kind as WindowKind, windowEnd(label) - 0.5), label);
    assert.notEqual(windowAt(kind as WindowKind, windowEnd(label)), label);
  }
});
