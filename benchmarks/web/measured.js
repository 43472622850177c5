// What is measured, the same in Node and in a browser. The benchmarks bundle it with the sources.
import { systemSource } from "../../client/web/src/bits.ts";
import { Client } from "../../client/web/src/entries/all.ts";
import { allParts } from "../../client/web/src/parts_all.ts";
import { readRegistry } from "../../client/web/src/registry.ts";
import { memoryStore } from "../../client/web/src/memory.ts";

const RECORDS = 500;
const ROUNDS = 15;
const REPORTS = 300;

const median = (times) => times.sort((one, other) => one - other)[times.length >> 1];

/** Microseconds of one call of record: the median of rounds. */
async function recording(document, values, options) {
  const client = new Client(document, { consent: true, ...options });
  const names = Object.keys(values);
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    const begin = performance.now();
    for (let call = 0; call < RECORDS; call++) {
      const name = names[call % names.length];
      client.record(name, values[name][call % values[name].length]);
    }
    times.push(((performance.now() - begin) * 1000) / RECORDS);
    await client.flush();
  }
  // Neither refused nor dropped: each metric has its window, with all of its records.
  const windows = (await client.accounts()).flatMap((each) => Object.values(each.windows));
  const kept = windows.reduce((sum, [, records]) => sum + records, 0);
  if (kept < RECORDS * ROUNDS) throw new Error(`${kept} records, status ${client.status}`);
  return median(times);
}

/** Microseconds of the baseline: a list takes the same pairs. */
function appending(values) {
  const names = Object.keys(values);
  const times = [];
  for (let round = 0; round < ROUNDS; round++) {
    const list = [];
    const begin = performance.now();
    for (let call = 0; call < RECORDS; call++) {
      const name = names[call % names.length];
      list.push([name, values[name][call % values[name].length]]);
    }
    times.push(((performance.now() - begin) * 1000) / RECORDS);
  }
  return median(times);
}

/** Microseconds of one report of each metric. */
function reporting(document, values) {
  const source = systemSource();
  const key = crypto.getRandomValues(new Uint8Array(32));
  const found = {};
  for (const [name, metric] of readRegistry(document, allParts).metrics) {
    const texts = values[name].map((value) => metric.normalize(value));
    const times = [];
    for (let round = 0; round < ROUNDS; round++) {
      const begin = performance.now();
      for (let report = 0; report < REPORTS; report++)
        metric.report(texts[report % texts.length], source, key);
      times.push(((performance.now() - begin) * 1000) / REPORTS);
    }
    found[name] = median(times);
  }
  return found;
}

/** Milliseconds that the first Client and its first record take: nothing is warm yet. */
function beginning(document, values, options) {
  const [name] = Object.keys(values);
  const begin = performance.now();
  const client = new Client(document, { consent: true, ...options });
  const made = performance.now();
  client.record(name, values[name][0]);
  return { client: made - begin, first: performance.now() - made };
}

export async function measure(document, values, inMemory) {
  const options = inMemory ? { state: memoryStore() } : {};
  const begun = beginning(document, values, options);
  return {
    ...begun,
    appending: appending(values),
    recording: await recording(document, values, options),
    reporting: reporting(document, values),
  };
}
