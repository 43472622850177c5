// The other implementation of both ends: RFC 9458 around @hpke/core (RFC 9180) and bhttp-js (RFC 9292).
// Arguments: the folder of the npm packages, then
//   client RELAY ENDPOINT KEM BATCH   sends a batch through a relay, and prints status and body
//   gateway KEM                       prints its address and identity, and serves until its input ends
import { createServer } from "node:http";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, part, ...given] = process.argv.slice(2);
const from = (path) => import(pathToFileURL(join(folder, "node_modules", path)).href);
const hpke = await from("@hpke/core/esm/mod.js");
const { BHttpDecoder, BHttpEncoder } = await from("bhttp-js/esm/mod.js");
const { subtle } = crypto;

const PATH = "/.well-known/ohttp-gateway";
const KEMS = {
  x25519: [0x20, hpke.DhkemX25519HkdfSha256, 32],
  p256: [0x10, hpke.DhkemP256HkdfSha256, 65],
};
const ascii = (text) => new TextEncoder().encode(text);
const joined = (...pieces) => Uint8Array.from(Buffer.concat(pieces.map((each) => Buffer.from(each))));

const suiteOf = (kem) =>
  new hpke.CipherSuite({
    kem: new KEMS[kem][1](),
    kdf: new hpke.HkdfSha256(),
    aead: new hpke.Aes128Gcm(),
  });

/** The AES key of a response, and its nonce (RFC 9458, 4.4). */
async function responseKey(context, enc, nonce, use) {
  const secret = await context.export(ascii("message/bhttp response"), 16);
  const ikm = await subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
  const derive = (info, size) =>
    subtle.deriveBits({ name: "HKDF", hash: "SHA-256", salt: joined(enc, nonce), info: ascii(info) }, ikm, size * 8);
  const key = await subtle.importKey("raw", await derive("key", 16), "AES-GCM", false, [use]);
  return [key, { name: "AES-GCM", iv: await derive("nonce", 12) }];
}

async function client(relay, endpoint, kem, batch) {
  const [number, , size] = KEMS[kem];
  const list = new Uint8Array(await (await fetch(relay + PATH)).arrayBuffer());
  const configuration = list.subarray(2, 2 + list[0] * 256 + list[1]);
  if (configuration[1] * 256 + configuration[2] !== number) throw new Error("another kind of key");
  const header = joined(configuration.subarray(0, 3), [0, 1, 0, 1]);
  const suite = suiteOf(kem);
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(configuration.slice(3, 3 + size).buffer),
    info: joined(ascii("message/bhttp request"), [0], header).buffer,
  });
  const request = new Request(`${endpoint}/v1/reports`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: batch,
    duplex: "half",
  });
  const message = await new BHttpEncoder().encodeRequest(request);
  const sealed = await sender.seal(message);
  const reply = await fetch(relay + PATH, {
    method: "POST",
    headers: { "Content-Type": "message/ohttp-req" },
    body: joined(header, new Uint8Array(sender.enc), new Uint8Array(sealed)),
  });
  if (reply.status !== 200) throw new Error(await reply.text());
  const capsule = new Uint8Array(await reply.arrayBuffer());
  const nonce = capsule.slice(0, 16);
  const [key, how] = await responseKey(sender, new Uint8Array(sender.enc), nonce, "decrypt");
  const opened = await subtle.decrypt(how, key, capsule.slice(16));
  const response = new BHttpDecoder().decodeResponse(opened);
  console.log(JSON.stringify([response.status, await response.json()]));
}

async function gateway(kem) {
  const [number, , size] = KEMS[kem];
  const suite = suiteOf(kem);
  const pair = await suite.kem.generateKeyPair();
  const point = new Uint8Array(await suite.kem.serializePublicKey(pair.publicKey));
  const configuration = joined([7, number >> 8, number & 255], point, [0, 4, 0, 1, 0, 1]);
  const list = joined([configuration.length >> 8, configuration.length & 255], configuration);
  const how = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const own = await subtle.generateKey(how, true, ["sign", "verify"]);
  const text = (bytes) => Buffer.from(bytes).toString("base64url");
  const signature = text(
    await subtle.sign(how, own.privateKey, joined(ascii("deniable gateway keys"), [0], list)),
  );

  async function answer(capsule) {
    const header = capsule.slice(0, 7);
    const enc = capsule.slice(7, 7 + size);
    const recipient = await suite.createRecipientContext({
      recipientKey: pair.privateKey,
      enc: enc.buffer,
      info: joined(ascii("message/bhttp request"), [0], header).buffer,
    });
    const opened = new Uint8Array(await recipient.open(capsule.slice(7 + size).buffer));
    const request = new BHttpDecoder().decodeRequest(opened);
    const { batch, reports } = await request.json();
    const told = { batch, accepted: reports.length, duplicate: 0, rejected: [], refused: {} };
    const media = request.headers.get("content-type");
    if (request.method !== "POST" || !/\/v1\/reports$/.test(request.url) || media !== "application/json")
      throw new Error("no batch");
    const response = new Response(JSON.stringify(told), {
      status: 202,
      headers: { "content-type": "application/json" },
    });
    const message = await new BHttpEncoder().encodeResponse(response);
    const nonce = crypto.getRandomValues(new Uint8Array(16));
    const [key, way] = await responseKey(recipient, enc, nonce, "encrypt");
    return joined(nonce, new Uint8Array(await subtle.encrypt(way, key, message)));
  }

  const server = createServer((request, response) => {
    if (request.method === "GET") {
      response.writeHead(200, { "Content-Type": "application/ohttp-keys", "Deniable-Signature": signature });
      response.end(list);
      return;
    }
    const pieces = [];
    request.on("data", (each) => pieces.push(each));
    request.on("end", () =>
      answer(joined(...pieces)).then(
        (capsule) => response.writeHead(200, { "Content-Type": "message/ohttp-res" }).end(capsule),
        (error) => {
          console.error(error);
          response.writeHead(400, { "Content-Type": "application/problem+json" }).end("{}");
        },
      ),
    );
  });
  server.listen(0, "127.0.0.1", async () => {
    const identity = text(await subtle.exportKey("raw", own.publicKey));
    console.log(JSON.stringify([`http://127.0.0.1:${server.address().port}`, identity]));
  });
  process.stdin.resume().on("end", () => process.exit(0));
}

await { client, gateway }[part](...given);
if (part === "client") process.exit(0);
