import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Source } from "../src/bits.ts";
import { erase, withdraw, write } from "../src/device.ts";
import { ACTIVE, type RecordedValue, type Registry } from "../src/metric.ts";
import { spent } from "../src/ledger.ts";
import { assemble, settle, take, trim, waiting } from "../src/outbox.ts";
import { full } from "../src/parts/full.ts";
import { readRegistry } from "../src/registry.ts";
import { resolve, type Told } from "../src/segments.ts";
import { freshState, readState, writeState, type Batch, type State } from "../src/state.ts";
import { readReply } from "../src/transport.ts";
import { windowAt } from "../src/windows.ts";
import { byteSource, fromHex, vectors } from "./support.ts";

type Any = any;

/** A sum in units of 2**-1074 as the shortest fraction. */
function fraction(sum: bigint): string {
  let below = 1n << 1074n;
  while (below > 1n && !(sum & 1n)) [sum, below] = [sum >> 1n, below >> 1n];
  return below > 1n ? `${sum}/${below}` : `${sum}`;
}

/** One device, driven step by step. */
class Driver {
  registry: Registry;
  text: string;
  now = 0;
  consent = true;
  batch: Batch | undefined;
  atOnce: string[] = [];
  told: Told = {};

  constructor(
    document: unknown,
    readonly spread: number,
    readonly source: Source,
  ) {
    this.registry = readRegistry(document, full);
    this.text = freshState(this.registry.app);
  }

  transact<T>(work: (state: State) => T): T {
    const state = readState(this.text, this.registry.app);
    const result = work(state);
    this.text = writeState(state);
    return result;
  }

  step(step: Any): Any {
    this.now = step.at ?? this.now;
    if (step.segments) {
      this.told = { ...this.told, ...step.segments };
      return step;
    }
    if (step.restart || step.upgrade) this.told = {};
    if (step.records) return { ...step, ...this.write(step.records) };
    if (step.take) {
      const urgent = step.take === "urgent";
      this.batch = this.transact((state) => take(state, this.now, this.source, urgent));
      return { ...step, body: this.batch?.body ?? null };
    }
    if (step.reply) return { ...step, ...this.reply(step.reply) };
    if (step.opt_out) {
      this.consent = false;
      this.transact(withdraw);
    } else if (step.opt_in) this.consent = true;
    else if (step.erase) this.transact(erase);
    else if (step.upgrade) this.registry = readRegistry(step.upgrade, full);
    else if (step.leave) this.leave();
    else if (!step.restart) return { ...step, ...this.holds() };
    return step;
  }

  write(given: [string, unknown][]): Any {
    if (!this.consent) return {};
    const records: RecordedValue[] = [];
    for (const [name, value] of given) {
      const metric = this.registry.metrics.get(name)!;
      const text = metric.normalize(value ?? ACTIVE);
      if (this.now >= metric.expires) continue;
      const window = windowAt(metric.window, this.now);
      if (!metric.segments?.length) records.push({ metric, text, window });
      else {
        const told = resolve(metric.segments, this.registry.segments, this.told);
        if (told) records.push({ metric: { ...metric, told }, text, window });
      }
    }
    return this.transact((state) => {
      const before = state.reports.length;
      const atOnce = write(state, this.registry, records, this.now, this.spread, this.source);
      this.atOnce.push(...atOnce.map(({ metric, window }) => `${metric} ${window}`));
      const sealed = state.reports
        .slice(before)
        .map(({ metric, window, ready }) => [metric, window, ready]);
      trim(state);
      return sealed.length ? { sealed } : {};
    });
  }

  /** What answers at once gets its batch now; in a page it has that from the start. */
  leave(): void {
    this.transact((state) => {
      const reports = state.reports.filter(
        ({ metric, window, batch }) => !batch && this.atOnce.includes(`${metric} ${window}`),
      );
      assemble(state, reports, this.now, this.source);
    });
  }

  reply(reply: Any): Any {
    const { id } = this.batch!;
    let status = 0;
    let body = "";
    if (reply.rejected) {
      status = 202;
      const rejected = Object.entries(reply.rejected).map(([index, reason]) => ({
        index: Number(index),
        reason,
      }));
      body = JSON.stringify({ batch: id, accepted: 0, rejected });
    } else if (reply !== "lost") {
      status = reply.status;
      body = JSON.stringify({ type: `urn:deniable:problem:${reply.problem ?? "store-unavailable"}` });
    }
    const after = reply.retry_after === undefined ? null : String(reply.retry_after);
    const outcome = readReply(status, body, after, id, this.now);
    const troubles = this.transact((state) => settle(state, id, outcome, this.now, this.source));
    if (!outcome.rejected) return { counted: false, final: !!outcome.refused };
    const waits = [...troubles].filter((each) => each !== "rejected");
    return waits.length ? { counted: true, waits } : { counted: true };
  }

  holds(): Any {
    return this.transact((state) => {
      const ledger: Any = {};
      const windows: Any = {};
      let values = 0;
      for (const account of state.accounts) {
        if (account.ledger.length) {
          const reports = account.ledger.reduce((sum, [, , count]) => sum + count, 0);
          ledger[account.name] = { reports, spent: fraction(spent(account)) };
          const memos = account.ledger.filter((each) => each[3] !== null);
          if (memos.length)
            ledger[account.name].memos = fraction(spent({ ...account, ledger: memos }, true));
        }
        for (const [window, found] of Object.entries(account.windows)) {
          (windows[account.name] ??= {})[window] = typeof found === "object" ? "open" : found;
          values += +(typeof found === "object" && found.length > 0);
        }
        values += Object.keys(account.held ?? {}).length;
      }
      const reports = state.reports.map(({ metric, window, status, reason }) => [
        metric,
        window,
        status,
        reason ?? null,
      ]);
      return { ledger, waiting: waiting(state), values, windows, reports };
    });
  }
}

/** What a step gave, without what each SDK may word in its own way. */
function comparable(step: Any): Any {
  const reports = step.reports?.map(([metric, window, status, reason]: string[]) => [
    metric,
    window,
    status,
    // Only the code of a problem is the same everywhere.
    /[a-z]+([-_][a-z]+)+/.exec(reason ?? "")?.[0] ?? null,
  ]);
  return { ...step, ...(reports && { reports }) };
}

/** The published transcripts, or others that the Python SDK has just made. */
const { DENIABLE_TRANSCRIPTS: made } = process.env;
const transcripts = made ? JSON.parse(readFileSync(made, "utf8")) : vectors("transcripts");

for (const { name, registry, spread, bytes, steps } of transcripts) {
  /** From the same bytes, every step gives what the Python SDK's device gives. */
  test(`transcript ${name}`, () => {
    const stream = fromHex(bytes);
    const source = byteSource(stream);
    const driver = new Driver(registry, spread, source);
    for (const step of steps)
      assert.deepEqual(comparable(driver.step(step)), comparable(step), JSON.stringify(step));
    assert.equal(source.used(), stream.length);
  });
}
