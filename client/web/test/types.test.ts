import assert from "node:assert/strict";
import { test } from "node:test";
import { systemSource } from "../src/bits.ts";
import type { Metric } from "../src/metric.ts";
import { full } from "../src/parts/full.ts";
import { readRegistry } from "../src/registry.ts";
import { byteSource, vectors } from "./support.ts";

const published = vectors("compiled").cases[0].document;

/** A metric of the published registry, changed. */
function metric(name: string, changes: object = {}): Metric {
  const document = { ...published, metrics: { it: { ...published.metrics[name], ...changes } } };
  return readRegistry(document, full).metrics.get("it")!;
}

const nothing = byteSource(new Uint8Array(0));

test("strings take the form of the vectors, and what is no value is refused", () => {
  const plugin = metric("plugin");
  const { valid, invalid } = vectors("values");
  for (const { text, value } of valid) assert.equal(plugin.normalize(text), value);
  for (const { text } of invalid)
    assert.throws(
      () => plugin.normalize(text),
      /^MetricError: metric it takes/,
      JSON.stringify(text),
    );
  for (const value of [1, true, null, undefined, ["Oslo"], { toString: () => "Oslo" }])
    assert.throws(() => plugin.normalize(value), /takes text/);
});

test("numbers wait as the doubles of the vectors, and what is no number is refused", () => {
  const photos = metric("photos");
  for (const { recorded, number, error } of vectors("numbers").records) {
    const value =
      typeof recorded === "string" ? Number(recorded.replace("inf", "Infinity")) : recorded;
    if (error) assert.throws(() => photos.normalize(value), /MetricError/);
    else assert.equal(photos.normalize(value), String(number));
  }
  for (const value of ["5", 5n, undefined, {}])
    assert.throws(() => photos.normalize(value), /takes numbers/);
});

test("numbers of one window become one number as in Python", () => {
  for (const { aggregate, records, values } of vectors("numbers").aggregates) {
    const photos = metric("photos", { aggregate });
    let value = "";
    records.forEach((record: number, at: number) => {
      const text = photos.normalize(record);
      value = at ? photos.merge(value, text, at + 1, nothing) : photos.begin(text);
      assert.equal(Number(value), values[at], `${aggregate} of ${records.join(", ")}`);
    });
  }
});

test("a number begins again where the window holds a text of another type", () => {
  for (const aggregate of ["max", "min", "sum", "mean"])
    for (const stale of ["firefox", "", "0x10", "1e2", " 5", "Infinity", "NaN"])
      assert.equal(metric("photos", { aggregate }).merge(stale, "5", 2, nothing), "5");
  for (const stale of ["true", "1e2", ""])
    assert.equal(metric("photos").report(stale, systemSource(), null), null);
});

test("each number has the position of the vectors, and bad ranges are refused", () => {
  const window = { columns: 2, width: 1, threshold: 6584790284608188, levels: [0, 2 ** 30] };
  for (const { low, high, scale, integer, values, error } of vectors("numbers").positions) {
    const build = () =>
      full.mechanisms.sliding_window!({ low, high, scale, integer, ...window });
    if (error) assert.throws(build, Error, error);
    else
      for (const [number, position] of values)
        assert.equal(build().position!(number), position, `${number} in ${low} to ${high}`);
  }
});

test("reservoir sampling keeps each record with the same chance", () => {
  // 4,000 windows of 4 records; a chi-square of 3 degrees of freedom exceeds 30.7 with 1e-6.
  const browser = metric("browser", { aggregate: "any", answer: "at_close" });
  const source = systemSource();
  const counts = new Map<string, number>();
  const texts = ["firefox", "chrome", "safari", "edge"];
  for (let window = 0; window < 4000; window++) {
    const value = texts.reduce((value, text, at) => browser.merge(value, text, at + 1, source));
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  const square = texts.reduce((sum, text) => sum + ((counts.get(text) ?? 0) - 1000) ** 2 / 1000, 0);
  assert.ok(square < 30.7, `chi-square is ${square}`);
});

test("no metric with memos reports without its key", () => {
  for (const name of ["cookies", "theme", "homepage"]) {
    const it = metric(name);
    const text = it.values?.[0] ?? "Oslo";
    assert.throws(() => it.report(text, systemSource(), null), /needs its key/);
    assert.ok(it.report(text, systemSource(), new Uint8Array(32)));
  }
});
