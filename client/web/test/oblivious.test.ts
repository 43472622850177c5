import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnswer, readKeys, request, seal, verified } from "../src/oblivious/capsules.ts";
import { ascii, type Bytes, joined, sender } from "../src/oblivious/hpke.ts";

const hex = (text: string): Bytes => Uint8Array.from(Buffer.from(text, "hex"));
const told = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

const CONFIGURATION =
  "01002031e1f05a740102115220e9af918f738674aec95f54db6e04eb705aae8e79815500080001000100010003";

/** A pair of X25519 keys of known bytes. */
async function pairOf(secret: string, open: string): Promise<CryptoKeyPair> {
  const how = { name: "X25519" };
  const pkcs8 = hex(`302e020100300506032b656e04220420${secret}`);
  const privateKey = await crypto.subtle.importKey("pkcs8", pkcs8, how, false, ["deriveBits"]);
  return { privateKey, publicKey: await crypto.subtle.importKey("raw", hex(open), how, true, []) };
}

/** RFC 9458, appendix A: the capsule of the request and the response's, bit by bit. */
test("the example of RFC 9458", async () => {
  const [key] = readKeys(hex(`002d${CONFIGURATION}`));
  assert.deepEqual([key!.id, key!.kem, told(key!.point)], [1, 0x20, CONFIGURATION.slice(6, 70)]);
  const own = await pairOf(
    "bc51d5e930bda26589890ac7032f70ad12e4ecb37abb1b65b1256c9c48999c73",
    "4b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472",
  );
  const sealed = await seal(key!, hex("00034745540568747470730b6578616d706c652e636f6d012f"), own);
  assert.equal(
    told(sealed.capsule),
    "010020000100014b28f881333e7c164ffc499ad9796f877f4e1051ee6d31bad19dec96c208b472" +
      "6374e469135906992e1268c594d2a10c695d858c40a026e7965e7d86b83dd440b2c0185204b4d63525",
  );
  const response = "c789e7151fcba46158ca84b04464910d86f9013e404feea014e7be4a441f234f857fbd";
  assert.equal(told(await sealed.open(hex(response))), "0140c8");
  await assert.rejects(sealed.open(hex(response.replace(/d$/, "c"))));
});

/** RFC 9180, appendix A.1.1: the first message, but for its additional data, and an exported secret. */
test("the first vector of RFC 9180", async () => {
  const own = await pairOf(
    "52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736",
    "37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431",
  );
  const receiver = hex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d");
  const info = hex("4f6465206f6e2061204772656369616e2055726e");
  const context = await sender(0x20, receiver, info, own);
  const secret = await context.secret("TestContext", 32);
  assert.equal(told(secret), "e9e43065102c3836401bed8c3c3c75ae46be1639869391d62c61f1ec7af54931");
});

/** Keys of other kinds, or without the algorithms of this SDK, are passed over; a cut list is none. */
test("lists of keys", () => {
  const other = CONFIGURATION.replace("00080001000100010003", "00040003000300");
  assert.deepEqual(readKeys(hex("000309ffff")), []);
  assert.deepEqual(readKeys(hex(`002d${CONFIGURATION.replace(/00010001/, "00010002")}`)), []);
  assert.throws(() => readKeys(hex(`002d${other}`)));
  assert.throws(() => readKeys(hex(`002d${CONFIGURATION.slice(0, -2)}`)));
});

/** A list counts only with the signature of the identity that the page carries. */
test("signed lists", async () => {
  const how = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const pairs = [];
  for (let n = 0; n < 2; n++) pairs.push(await crypto.subtle.generateKey(how, true, ["sign", "verify"]));
  const [gateway, other] = pairs;
  const list = hex(`002d${CONFIGURATION}`);
  const message = joined(ascii("deniable gateway keys\0"), list);
  const identity = Buffer.from(await crypto.subtle.exportKey("raw", gateway!.publicKey)).toString("base64url");
  const sign = async (pair: CryptoKeyPair) =>
    Buffer.from(await crypto.subtle.sign(how, pair.privateKey, message)).toString("base64url");
  assert.equal((await verified(identity, list, await sign(gateway!))).length, 1);
  await assert.rejects(verified(identity, list, await sign(other!)), /not signed by the gateway/);
  await assert.rejects(verified(identity, list, ""), /not signed by the gateway/);
  await assert.rejects(verified(identity, list.slice(1), await sign(gateway!)), /not signed/);
});

/** The size of a message depends on metrics and counts, and on no number that was drawn. */
test("sizes", () => {
  const url = new URL("https://t.acme.example/v1/reports");
  const sizes = new Set<number>();
  for (const drawn of [0, 7, 4095])
    for (const row of [undefined, 3, 900]) {
      const report = { metric: "m", scheme: "s", window: "2026-11-21", row, columns: [drawn, drawn] };
      sizes.add(request(url, JSON.stringify({ batch: "b", reports: Array(9).fill(report) }), "k").length);
    }
  assert.deepEqual([...sizes], [2048]);
});

/** What is no response of known length is none. */
test("responses", () => {
  assert.deepEqual(readAnswer(hex("0140ca0e0b72657472792d6166746572013703616263" + "00".repeat(9))), {
    status: 202,
    retryAfter: "7",
    body: "abc",
  });
  for (const text of ["", "00", "0340c8", "0140", "0140c80005"]) assert.throws(() => readAnswer(hex(text)));
});
