import assert from "node:assert/strict";
import { test } from "node:test";
import { systemSource } from "../src/bits.ts";
import { MetricError } from "../src/metric.ts";
import { full } from "../src/parts/full.ts";
import { closed } from "../src/parts/closed.ts";
import { readRegistry, RegistryError } from "../src/registry.ts";
import { byteSource, present, vectors } from "./support.ts";

type Any = any;

/** A registry of one boolean and one category, which each test changes. */
function example(): Any {
  const common = {
    description: "What the test asks.",
    expires: "2027-06-30",
    window: "day",
    aggregate: "last",
    answer: "at_close",
    sample_rate: 0.5,
    one_in: null,
    longitudinal: "fresh",
    epsilon: 1.0,
    lifetime_epsilon: 8.0,
    memo_epsilon: null,
    platform: ["web"],
    unit: null,
  };
  return {
    format: 1,
    app: "editor",
    lifetime_epsilon: 40.0,
    metrics: {
      dark_mode: {
        ...common,
        type: "boolean",
        values: ["true", "false"],
        other: null,
        mechanism: "subset_selection",
        parameters: { size: 2, k: 1, threshold: 6584790284608188 },
        scheme: "5a9aecab0f02",
        reveals: { report: 0.9999999999999996, memo: null, fresh: null },
      },
      browser: {
        ...common,
        type: "category",
        aggregate: "first",
        values: ["firefox", "chrome", "caf\u00e9", "other"],
        other: "other",
        mechanism: "subset_selection",
        parameters: { size: 4, k: 1, threshold: 4281724265078805 },
        scheme: "b9c703502c7a",
        reveals: { report: 0.9999999999999999, memo: null, fresh: null },
      },
    },
  };
}

test("recipient and contact may be there, as text", () => {
  assert.deepEqual(mistakes({ ...example(), recipient: "Acme Ltd", contact: "a@acme.example" }), []);
  assert.deepEqual(mistakes({ ...example(), recipient: " ", contact: 7 }), ["recipient", "contact"]);
});

/** The fields that are found wrong. */
function mistakes(document: unknown, parts = closed): string[] {
  try {
    readRegistry(document, parts);
  } catch (error) {
    assert.ok(error instanceof RegistryError, String(error));
    return error.mistakes.map((each) => each.split(":")[0]!);
  }
  return [];
}

test("a compiled registry is read, with its metrics in the names of the SDK", () => {
  const registry = readRegistry(example(), closed);
  assert.equal(registry.app, "editor");
  assert.equal(registry.lifetimeEpsilon, 40);
  const metric = registry.metrics.get("browser")!;
  assert.equal(metric.sample_rate, 0.5);
  assert.equal(metric.lifetime_epsilon, 8);
  assert.equal(metric.lifetime_epsilon, 8);
  assert.equal(metric.expires, Date.UTC(2027, 6, 1) / 1000);
  assert.equal(metric.reveals.report, 0.9999999999999999);
});

test("each change that breaks the format, or would reveal more, is refused by the field's name", () => {
  const cases: [string, (document: Any) => void][] = [
    ["format", (d) => (d.format = 3)],
    ["format", (d) => delete d.format],
    ["app", (d) => (d.app = "Editor")],
    ["lifetime_epsilon", (d) => (d.lifetime_epsilon = 0)],
    ["surplus", (d) => (d.surplus = 1)],
    ["metrics", (d) => (d.metrics = [])],
    ["metrics", (d) => (d.metrics = {})],
    ["metrics.browser.parameters", (d) => (d.metrics.browser.mechanism = "valueOf")],
    ["metrics.browser.parameters", (d) => (d.metrics.browser.mechanism = "rappor")],
    ["metrics.Browser", (d) => (d.metrics.Browser = d.metrics.browser)],
    ["metrics.browser", (d) => (d.metrics.browser = null)],
    ...["constructor", "__proto__", "toString"].map((name): [string, (d: Any) => void] => [
      `metrics.browser.${name}`,
      (d) => Object.defineProperty(d.metrics.browser, name, { value: 1, enumerable: true }),
    ]),
  ];
  const changes: [string, unknown][] = [
    ["type", "string"],
    ["type", "constructor"],
    ["description", 7],
    ["expires", "2027-02-30"],
    ["expires", "2027-06"],
    ["window", "year"],
    ["aggregate", "max"],
    ["answer", "soon"],
    ["sample_rate", 0],
    ["sample_rate", 1.01],
    ["sample_rate", "1"],
    ["one_in", 1],
    ["one_in", 2.5],
    ["one_in", 92],
    ["longitudinal", "memoize"],
    ["epsilon", 0.9999999999999998],
    ["epsilon", 11],
    ["epsilon", Number.NaN],
    ["lifetime_epsilon", 0.5],
    ["lifetime_epsilon", 1e5],
    ["memo_epsilon", 2],
    ["values", null],
    ["values", ["a"]],
    ["values", ["a", "b", "c", "a"]],
    ["values", ["a", "b", "cafe\u0301", "other"]],
    ["other", "rest"],
    ["other", null],
    ["parameters", { size: 4, k: 1, threshold: 4281724265078805, surplus: 1 }],
    ["parameters", { size: 4, k: 1 }],
    ["parameters", []],
    ["scheme", "964368715BA2"],
    ["platform", "web"],
    ["platform", ["web", "web"]],
    ["platform", ["tv"]],
    ["unit", 3],
  ];
  for (const [key, value] of changes)
    if (key !== "other" || value !== null)
      cases.push([`metrics.browser.${key}`, (d) => (d.metrics.browser[key] = value)]);
  cases.push(
    ["metrics.browser.window", (d) => delete d.metrics.browser.window],
    ["metrics.browser.values", (d) => (d.metrics.browser.values = ["a", "b", "other"])],
    ["metrics.dark_mode.answer", (d) => (d.metrics.dark_mode.answer = "at_once")],
    ["metrics.browser.reveals", (d) => (d.metrics.browser.reveals = null)],
    [
      "metrics.browser.reveals.report",
      (d) => (d.metrics.browser.reveals.report = 0.9999999999999998),
    ],
    ["metrics.browser.reveals.report", (d) => (d.metrics.browser.reveals.report = 1)],
    ["metrics.browser.reveals.memo", (d) => (d.metrics.browser.reveals.memo = 2)],
    // One more truthful answer in 2**53 than the figures say.
    ["metrics.browser.reveals.report", (d) => (d.metrics.browser.parameters.threshold += 4)],
  );
  for (const [field, change] of cases) {
    const document = example();
    change(document);
    assert.ok(
      mistakes(document).includes(field),
      `${field}: found ${mistakes(document).join(", ")}`,
    );
  }
  for (const document of [null, undefined, 7, "text", [], () => 1])
    assert.equal(mistakes(document).length, 1, String(document));
});

test("all mistakes are listed at once", () => {
  const document = example();
  document.metrics.browser.window = "year";
  document.metrics.dark_mode.scheme = "?";
  document.app = "editor";
  assert.deepEqual(mistakes(document).sort(), [
    "metrics.browser.window",
    "metrics.dark_mode.scheme",
  ]);
});

test("values are normalized, stand in for others, and are refused without being repeated", () => {
  const { metrics } = readRegistry(example(), closed);
  const [dark, browser] = [metrics.get("dark_mode")!, metrics.get("browser")!];
  assert.equal(dark.normalize(true), "true");
  assert.equal(browser.normalize("cafe\u0301"), "caf\u00e9");
  assert.equal(browser.normalize("secret"), "other");
  assert.ok(browser.standsIn("other", "secret"));
  assert.ok(!browser.standsIn("other", "other"));
  assert.ok(!browser.standsIn("firefox", "firefox"));
  const strict = example();
  strict.metrics.browser.other = null;
  const refused: [typeof dark, unknown][] = [
    [dark, "true"],
    [dark, 1],
    [dark, null],
    [browser, 7],
    [browser, undefined],
    [readRegistry(strict, closed).metrics.get("browser")!, "secret"],
    [readRegistry(strict, closed).metrics.get("browser")!, "e\u0301".repeat(4000)],
  ];
  for (const [metric, value] of refused)
    assert.throws(
      () => metric.normalize(value),
      (error: Error) => error instanceof MetricError && !error.message.includes("secret"),
    );
});

test("records of one window become one value as the aggregate says", () => {
  const { metrics } = readRegistry(example(), closed);
  const nothing = byteSource(new Uint8Array(0));
  assert.equal(metrics.get("dark_mode")!.merge("true", "false", 2, nothing), "false");
  assert.equal(metrics.get("browser")!.merge("firefox", "chrome", 2, nothing), "firefox");
  const document = example();
  document.metrics.dark_mode.aggregate = "max";
  document.metrics.browser.aggregate = "any";
  const changed = readRegistry(document, closed).metrics;
  for (const [value, text, merged] of [
    ["true", "false", "true"],
    ["false", "true", "true"],
    ["false", "false", "false"],
  ] as const)
    assert.equal(changed.get("dark_mode")!.merge(value, text, 2, nothing), merged);
  const any = changed.get("browser")!;
  assert.equal(any.merge("firefox", "chrome", 3, byteSource(Uint8Array.of(0b00111111))), "chrome");
  assert.equal(any.merge("firefox", "chrome", 3, byteSource(Uint8Array.of(0b01111111))), "firefox");
});

test("a text that is no value any more is reported as `other`, or not at all", () => {
  const document = example();
  const source = systemSource();
  const metric = readRegistry(document, closed).metrics.get("browser")!;
  assert.notEqual(metric.report("opera", source, null), null);
  document.metrics.browser.other = null;
  assert.equal(
    readRegistry(document, closed).metrics.get("browser")!.report("opera", source, null),
    null,
  );
});

test("the published registries are read, and each bad one is refused by the field's name", () => {
  for (const { name, document, error } of vectors("compiled").cases) {
    const found = mistakes(present(document, error), full);
    assert.ok(
      error ? found.some((each) => each.startsWith(error)) : !found.length,
      `${name}: found ${found.join(", ")}`,
    );
  }
});

test("a bundle says which type or mechanism it lacks", () => {
  const document = example();
  document.metrics.browser.mechanism = "rappor";
  assert.throws(
    () => readRegistry(document, closed),
    /build of the SDK.*browser\.parameters: no rappor in this build/,
  );
});
