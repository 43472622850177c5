import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../src/entries/full.ts";
import { memoryStore } from "../src/memory.ts";
import { document } from "./world.ts";

const METRICS = {
  format: 1,
  app: "editor",
  lifetime_epsilon: null,
  metrics: {
    dark: { type: "boolean", values: ["true", "false"], other: null },
    browser: { type: "category", values: ["firefox", "chrome"], other: null },
    plugin: { type: "category", values: ["git", "other"], other: "other" },
    city: { type: "string", values: null, other: null },
    seconds: { type: "number", values: null, other: null },
  },
} as const;

/** Only compiled: each mistake must be one for the compiler too, or `npm run check` fails. */
export function mistakes(client: Client<typeof METRICS>): void {
  client.record("dark", true);
  client.record("browser", "firefox");
  client.record("plugin", "anything");
  client.record("city", "Oslo");
  client.record("seconds", 3);
  // @ts-expect-error no such metric
  client.record("drak", true);
  // @ts-expect-error a boolean is no text
  client.record("dark", "true");
  // @ts-expect-error a value that is not declared
  client.record("browser", "lynx");
  // @ts-expect-error a category is no number
  client.record("plugin", 1);
  // @ts-expect-error a number is no text
  client.record("seconds", "3");
  // @ts-expect-error consent is missing
  new Client(METRICS, { endpoint: "https://t.acme.example" });
  // @ts-expect-error consent is no text
  new Client(METRICS, { consent: "yes" });
  // @ts-expect-error no such option
  new Client(METRICS, { consent: true, endpiont: "" });
}

/** Of a parsed metrics.json the compiler knows only the names of metrics. */
export function widened(client: Client<{ metrics: { dark: { type: string; values: string[]; other: null } } }>): void {
  client.record("dark", true);
  // @ts-expect-error no such metric
  client.record("drak", true);
}

/** The class gives a client, also outside a browser if it gets a store. */
test("class", async () => {
  const state = memoryStore();
  const client = new Client(document() as typeof METRICS, { consent: true, state });
  assert.equal(client.status, "on");
  assert.equal(client.consent, true);
  await client.close();
  assert.equal(client.status, "closed");
});
