import assert from "node:assert/strict";
import { test } from "node:test";
import { below, sourceOf, systemSource } from "../src/bits.ts";
import { full } from "../src/parts/full.ts";
import { flips } from "../src/flips.ts";
import { subset } from "../src/subset.ts";
import { ABSENT, bitsOf, drawn, flagsOf, fromHex, on, vectors } from "./support.ts";

const draws = vectors("draws");


test("a subset is drawn from the same bytes as in Python", () => {
  for (const { size, count, bytes, positions } of draws.subsets)
    assert.deepEqual(
      drawn(bytes, (source) => on(subset(size, count, source))),
      positions,
    );
});

test("bits are flipped by the same bytes as in Python", () => {
  for (const { size, ones, if_one, if_zero, bytes, heads } of draws.flips) {
    const flags = flagsOf(size, ones);
    assert.deepEqual(
      drawn(bytes, (source) => on(flips(flags, if_one, if_zero, source))),
      heads,
    );
  }
});

test("each mechanism makes the same report from the same bytes as in Python", () => {
  const done = new Set<string>();
  for (const { mechanism, parameters, item, key, scheme, bytes, row, columns } of draws.reports) {
    if (ABSENT.has(mechanism)) continue;
    const build = full.mechanisms[mechanism];
    assert.ok(build, `there is no mechanism ${mechanism}`);
    const report = drawn(bytes, (source) =>
      build(parameters).randomize(item, source, key ? fromHex(key) : null, scheme),
    );
    assert.deepEqual(report, { row, columns }, `${mechanism} ${JSON.stringify(parameters)}`);
    done.add(mechanism);
  }
  assert.deepEqual([...done].sort(), Object.keys(full.mechanisms).sort());
});

test("an integer of n bits takes whole bytes and drops the lowest bits", () => {
  const stream = Uint8Array.from({ length: 64 }, (_, at) => (at * 167 + 91) & 255);
  const source = () => sourceOf((count) => stream.slice(0, count));
  for (let count = 0; count <= 53; count++) {
    let expected = 0n;
    for (let at = Math.ceil(count / 8) - 1; at >= 0; at--)
      expected = expected * 256n + BigInt(stream[at]!);
    expected >>= BigInt(8 * Math.ceil(count / 8) - count);
    assert.equal(bitsOf(source(), count), expected);
    assert.equal(source().int(count), Number(expected));
  }
});

test("the system's source gives fresh bytes, also more than the browser gives at once", () => {
  const source = systemSource();
  const seen = new Set(Array.from({ length: 2000 }, () => bitsOf(source, 128)));
  assert.equal(seen.size, 2000);
  const many = source.bytes(200_000);
  for (let at = 0; at < many.length; at += 1000)
    assert.ok(many.slice(at, at + 1000).some(Boolean), `bytes from ${at} are all zero`);
});

test("uniform integers stay below their bound and reach all of it", () => {
  const source = systemSource();
  for (const bound of [1, 2, 3, 5, 8])
    assert.equal(new Set(Array.from({ length: 400 }, () => below(bound, source))).size, bound);
  assert.ok(below(2 ** 32, source) < 2 ** 32);
});
