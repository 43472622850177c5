import assert from "node:assert/strict";
import { test } from "node:test";
import { readReply } from "../src/transport.ts";
import { vectors } from "./support.ts";

const { counted, problems } = vectors("wire").answers;

/** A receipt leaves out the reports that it should. */
for (const { why, batch, status, body, left_out } of counted)
  test(`receipt: ${why}`, () => {
    assert.deepEqual(readReply(status, body, null, batch, 0), { rejected: left_out });
  });

/** A problem ends the batch or lets it wait, as in the Python SDK. */
for (const { why, batch, status, body, final } of problems)
  test(`problem: ${why}`, () => {
    const { refused, trouble } = readReply(status, body, null, batch, 0);
    assert.equal(!!refused, final);
    assert.equal(!!trouble, !final);
  });
