import assert from "node:assert/strict";
import { test } from "node:test";
import vectors from "../../vectors/windows.json";
import type { WindowKind } from "../src/metric.ts";
import { windowAt, windowEnd, windowNumber, windowStart } from "../src/windows.ts";

test("each label of the vectors has its start and end, and is given back by its moments", () => {
  for (const { label, kind, start, end, number } of vectors.valid) {
    assert.equal(windowStart(label), Date.parse(start) / 1000, label);
    assert.equal(windowEnd(label), Date.parse(end) / 1000, label);
    assert.equal(windowNumber(label), number, label);
    assert.equal(windowAt(kind as WindowKind, windowStart(label)), label);
    assert.equal(windowAt(kind as WindowKind, windowEnd(label) - 0.5), label);
    assert.notEqual(windowAt(kind as WindowKind, windowEnd(label)), label);
  }
});

test("what names no window is refused", () => {
  for (const label of [...vectors.invalid, "10000-01", "+02026-11-21", "2026-11-21T00:00:00Z"])
    assert.throws(() => windowStart(label), RangeError, label);
});

test("every day of 400 years lies in one window of each kind, which ends where the next begins, with the next number", () => {
  const day = 86400;
  for (let at = Date.UTC(1890) / 1000; at < Date.UTC(2290) / 1000; at += day)
    for (const kind of ["day", "week", "month"] as const) {
      const label = windowAt(kind, at);
      const [start, end] = [windowStart(label), windowEnd(label)];
      assert.ok(start <= at && at + day <= end, label);
      assert.equal(windowStart(windowAt(kind, end)), end, label);
      assert.equal(windowNumber(windowAt(kind, end)) - windowNumber(label), 1, label);
    }
});
