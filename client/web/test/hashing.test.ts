import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { test } from "node:test";
import { fingerprint, sha256 } from "../src/fingerprint.ts";
import { hash64 } from "../src/hash.ts";
import { keyedSource, sha512 } from "../src/keyed.ts";
import { bitsOf, fromHex, vectors } from "./support.ts";

test("each string falls where the vectors say", () => {
  for (const { salt, text, rows } of vectors("hashing").valid)
    rows.forEach((hash: string, row: number) =>
      assert.equal(hash64(salt, row, text).toString(16).padStart(16, "0"), hash),
    );
});

test("SHA-512 is that of the platform, for every length around one and two blocks", () => {
  for (let length = 0; length < 300; length++) {
    const message = randomBytes(length);
    const expected = createHash("sha512").update(message).digest("hex");
    assert.equal(Buffer.from(sha512(message)).toString("hex"), expected, `${length} bytes`);
  }
});

test("a key and a label give the bits of the vectors, call by call", () => {
  for (const { key, label, draws } of vectors("memory").sources) {
    const source = keyedSource(fromHex(key))(label);
    for (const { bits, value } of draws) assert.equal(bitsOf(source, bits).toString(16), value, label);
  }
});

test("SHA-256 is that of the platform, for every length around one and two blocks", () => {
  for (let length = 0; length < 200; length++) {
    const message = randomBytes(length);
    assert.equal(sha256(message), createHash("sha256").update(message).digest("hex"));
  }
});

test("a scheme has the fingerprint of the vectors", () => {
  for (const { definition, fingerprint: expected } of vectors("scheme").valid) {
    const segments = (definition.segments ?? []) as { name: string; values: string[] }[];
    const names = definition.segments && segments.map(({ name }) => name);
    const declared = new Map(segments.map(({ name, values }) => [name, { values, other: null }]));
    assert.equal(fingerprint({ ...definition, segments: names }, declared), expected);
  }
});
