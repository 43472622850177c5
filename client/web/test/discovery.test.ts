import assert from "node:assert/strict";
import { test } from "node:test";
import { systemSource } from "../src/bits.ts";
import { hashBytes } from "../src/hash.ts";
import { placeOf, prefixTree } from "../src/mechanisms/prefix_tree.ts";
import type { Metric } from "../src/metric.ts";
import { Client } from "../src/entries/full.ts";
import { full } from "../src/parts/full.ts";
import { readRegistry, RegistryError } from "../src/registry.ts";
import { isDenied } from "../src/types/discovery.ts";
import { byteSource, vectors } from "./support.ts";
import { DAY, World, seeded } from "./world.ts";

type Any = any;

const published = vectors("discovery");
const transcripts = vectors("transcripts");
const [registry] = transcripts
  .map((each: Any) => each.registry)
  .filter(({ metrics }: Any) => Object.values<Any>(metrics).some(({ type }) => type === "discovery"));
const declared: Any = Object.values<Any>(registry.metrics).find(({ type }) => type === "discovery");

/** The registry of one discovery, changed. */
const changed = (changes: Any = {}): Any => ({ ...registry, metrics: { word: { ...declared, ...changes } } });

const SPACE = { salt: "city", size: 13, q: 3, t: 3, threshold: 4503599627370496 };

/** A discovery over a small space, with these keys of metrics.toml. */
function discovery({ max_length, alphabet, deny }: Any): Metric {
  const type = full.types.discovery!;
  const parameters = { ...SPACE, levels: max_length / 2, alphabet };
  return type.made!({ deny, parameters } as Any, prefixTree(parameters)) as Any;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

test("vectors: heads", () => {
  for (const { text, levels, alphabet, head } of published.heads)
    assert.equal(hex(prefixTree({ ...SPACE, levels, alphabet }).head!(text)), head, JSON.stringify(text));
});

test("vectors: places", () => {
  for (const { salt, levels, width, text, bases, places } of published.places) {
    const head = prefixTree({ ...SPACE, levels, alphabet: "bytes" }).head!(text);
    for (let row = 0; row <= levels; row++) {
      assert.equal(placeOf(salt, row, head, width), places[row]);
      const base = hashBytes(salt, row, head.subarray(0, 2 * row)) % BigInt(width);
      assert.equal(Number(base), bases[row]);
    }
  }
});

test("vectors: denied texts", () => {
  for (const { pattern, text, denied } of published.denied)
    assert.equal(isDenied(text, [pattern]), denied, `${pattern} ${text}`);
});

test("vectors: what waits for a recorded text", () => {
  for (const { text, waits, ...keys } of published.recorded)
    assert.equal(discovery(keys).normalize(text), waits, JSON.stringify([keys, text]));
});

/** Half of a surrogate pair and what is no text are refused, without repeating them. */
test("what is no text", () => {
  const any = discovery({ max_length: 16, alphabet: "bytes", deny: [] });
  for (const text of published.invalid)
    assert.throws(() => any.normalize(text), (error: Error) => /surrogate/.test(error.message));
  for (const value of [1, null, undefined, {}, ["a"], true])
    assert.throws(() => any.normalize(value), /takes text/);
  assert.equal(any.normalize("a\0\ud800"), "a");
  assert.equal(any.normalize(`${"x".repeat(1023)}\u{1f600}\ud800`), "x".repeat(16));
});

/** Any text is normalized once and for all: what waits stays as it is, and its head is the text's. */
test("property: what waits", () => {
  const random = seeded(17);
  const letters = ["a", "B", "*", "@", " ", "\n", "\0", "\u0301", "é", "п", "天", "\u{1f600}", "\u202e", "."];
  for (let each = 0; each < 3000; each++) {
    const text = Array.from({ length: Math.floor(random() * 24) }, () => letters[Math.floor(random() * letters.length)]).join("");
    const keys = { max_length: 2 + 2 * Math.floor(random() * 8), alphabet: random() < 0.8 ? "bytes" : "printable", deny: random() < 0.5 ? ["*@*"] : [] };
    const metric = discovery(keys);
    const waits = metric.normalize(text);
    assert.equal(metric.normalize(waits), waits);
    const mechanism = prefixTree({ ...SPACE, levels: keys.max_length / 2, alphabet: keys.alphabet });
    const known = mechanism.head!(text);
    assert.ok(!waits || hex(mechanism.head!(waits)) === hex(known));
    if (keys.deny.length && waits) assert.ok(!waits.includes("@") && !text.normalize().split("\0")[0]!.includes("@"));
  }
});

/** A pattern takes no time that grows faster than its pieces times the text. */
test("hostile patterns end soon", () => {
  const text = "a".repeat(1024);
  const deny = Array.from({ length: 100 }, () => `${"a*".repeat(63)}b`);
  assert.equal(isDenied(text, deny), false);
});

/** Every draw uses all rows and stays inside of them, for texts of any kind. */
test("reports", () => {
  const mechanism = prefixTree({ ...SPACE, levels: 3, alphabet: "lowercase" });
  const seen = new Set<number>();
  const source = systemSource();
  for (const item of ["", "oslo", "OSLO", "天气", "a\u0301".repeat(600)])
    for (let each = 0; each < 40; each++) {
      const { row, columns } = mechanism.randomize(item, source, null, "");
      seen.add(row);
      assert.ok(row >= 0 && row <= 3 && Number(columns) >= 0 && Number(columns) < 13);
    }
  assert.equal(seen.size, 4);
  assert.throws(() => mechanism.randomize("", byteSource(new Uint8Array(0)), null, ""));
});

/** Each change is refused by the field's name; other bundles refuse the type. */
test("faults of a discovery", () => {
  assert.ok(readRegistry(changed(), full).metrics.get("word"));
  const { parameters } = declared;
  const faults: [string, Any][] = [
    ["deny", { deny: null }],
    ["deny", { deny: ["**"] }],
    ["deny", { deny: [7] }],
    ["deny", { deny: ["a\0"] }],
    ["deny", { deny: ["\ud800"] }],
    ["deny", { deny: ["e\u0301"] }],
    ["deny", { deny: ["a".repeat(129)] }],
    ["deny", { deny: new Array(101).fill("a") }],
    ["minimum_share", { minimum_share: 1 }],
    ["minimum_share", { minimum_share: -0.1 }],
    ["values", { values: ["a"] }],
    ["other", { other: "a" }],
    ["aggregate", { aggregate: "max" }],
    ["longitudinal", { longitudinal: "memoize" }],
    ["mechanism", { mechanism: "hashed_projective_geometry" }],
    ["parameters", { parameters: { ...parameters, alphabet: "klingon" } }],
    ["parameters", { parameters: { ...parameters, alphabet: "constructor" } }],
    ["parameters", { parameters: { ...parameters, levels: 17 } }],
    ["parameters", { parameters: { ...parameters, size: parameters.size - 1 } }],
    ["scheme", { parameters: { ...parameters, salt: "other" } }],
    ["epsilon", { epsilon: 0.1 }],
    ["reveals.report", { reveals: { ...declared.reveals, report: 0.1 } }],
  ];
  for (const [field, change] of faults)
    assert.throws(
      () => readRegistry(changed(change), full),
      (error: unknown) => error instanceof RegistryError && error.mistakes.some((each) => each.startsWith(`metrics.word.${field}`)),
      JSON.stringify(change),
    );
  const without = { ...declared };
  delete without.deny;
  assert.throws(() => readRegistry({ ...registry, metrics: { word: without } }, full), /deny/);
});

/** In a page: the value waits, is denied after an upgrade of the app, and one report is sent. */
test("a client", async () => {
  const world = new World();
  const start = (metrics: Any, options: Any = {}): Any =>
    new Client(metrics, {
      consent: true,
      endpoint: "https://t.acme.example",
      spread: 0,
      development: false,
      clock: () => world.now,
      ...options,
    });
  const client = start(changed());
  client.record("word", "a@b.example");
  client.record("word", "\ud800");
  await client.flush();
  assert.deepEqual(client.counters, { refused: 1 });
  await client.close();
  const upgraded = start(changed({ deny: ["*@*"] }));
  world.now += DAY;
  await upgraded.flush();
  const [report, ...others] = world.collector.reports;
  assert.deepEqual(others, []);
  assert.equal(report.metric, "word");
  assert.ok((report.row ?? 0) <= declared.parameters.levels);
  const developed = start(changed(), { development: true });
  developed.record("word", "secret\ud800");
  await developed.flush();
  assert.deepEqual(developed.counters, { refused: 1 });
});
