// Capsules of Oblivious HTTP (RFC 9458), the client's side, and the messages in them (RFC 9292).

import { ascii, type Bytes, expand, extract, gcm, joined, KEMS, sender, two } from "./hpke.ts";

/** A public key of the gateway. */
export interface Key {
  readonly id: number;
  readonly kem: number;
  readonly point: Bytes;
}

const KEY = 16;
const NONCE = 12;
const SMALLEST = 1024;
/** As many digits as the largest row and column of any scheme have. */
const DIGITS = 10;

/** The keys of `application/ohttp-keys` that this browser may use, in their order: of a known kind, with
 * HKDF-SHA256 and AES-128-GCM. Throws if it is no such list. */
export function readKeys(list: Bytes): Key[] {
  const found: Key[] = [];
  for (let place = 0; place < list.length; ) {
    const view = new DataView(list.buffer, list.byteOffset + place);
    const end = place + 2 + view.getUint16(0);
    const kem = view.getUint16(3);
    const size = KEMS[kem]?.size;
    if (end > list.length) throw new RangeError();
    if (size) {
      const point = list.slice(place + 5, place + 5 + size);
      const pairs = list.slice(place + 7 + size, end).join() + ",";
      if (/^(\d+,\d+,\d+,\d+,)*?0,1,0,1,/.test(pairs)) found.push({ id: view.getUint8(2), kem, point });
    }
    place = end;
  }
  return found;
}

/** The keys in a list that the gateway of this identity signed. Throws or rejects for any other. */
export async function verified(identity: string, list: Bytes, signature: string): Promise<Key[]> {
  const how = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", fromBase64(identity), how, false, ["verify"]);
  const message = joined(ascii("deniable gateway keys\0"), list);
  if (!(await crypto.subtle.verify(how, key, fromBase64(signature), message)))
    throw new Error("the list of keys is not signed by the gateway whose identity the page carries");
  return readKeys(list);
}

const fromBase64 = (text: string): Bytes => ascii(atob(text.replace(/-/g, "+").replace(/_/g, "/")));

/** A number of RFC 9000, 16, below 2^30. */
const number = (value: number): Bytes =>
  value < 64
    ? Uint8Array.of(value)
    : value < 16384
      ? two(value | 0x4000)
      : joined(two((value >>> 16) | 0x8000), two(value & 0xffff));

const sized = (bytes: Bytes): Bytes => joined(number(bytes.length), bytes);

/** A POST of a batch as `message/bhttp`, padded to a power of two that depends on nothing random. */
export function request(url: URL, body: string, key: string | undefined): Bytes {
  const fields = [ascii("content-type"), ascii("application/json")];
  if (key) fields.push(ascii("authorization"), ascii(`Bearer ${key}`));
  const control = ["POST", url.protocol.slice(0, -1), url.host, url.pathname];
  const content = new TextEncoder().encode(body);
  const message = joined(
    Uint8Array.of(0),
    ...control.map((each) => sized(ascii(each))),
    sized(joined(...fields.map(sized))),
    sized(content),
    Uint8Array.of(0),
  );
  let size = SMALLEST;
  while (size < message.length + spare(body)) size *= 2;
  const padded = new Uint8Array(size);
  padded.set(message);
  return padded;
}

/** How many bytes longer a batch of the same metrics and counts could be. */
function spare(body: string): number {
  const { reports } = JSON.parse(body) as { reports: { row?: number; columns: unknown }[] };
  const left = (value: unknown) => Math.max(0, DIGITS - String(value).length);
  return reports.reduce((sum, { row, columns }) => {
    const drawn = typeof columns === "string" ? [] : [columns].flat();
    // A row 0 is left out.
    const rows = row === undefined ? ',"row":'.length + DIGITS : left(row);
    return sum + rows + drawn.reduce<number>((all, each) => all + left(each), 0);
  }, 0);
}

/** What is in a response of the gateway. */
export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly body: string;
}

/** Read a `message/bhttp` response of known length. Throws for anything else. */
export function readAnswer(message: Bytes): Answer {
  let place = 0;
  const take = (size: number) => {
    if (place + size > message.length) throw new RangeError();
    return message.slice(place, (place += size));
  };
  const value = () => {
    const first = take(1)[0]!;
    return take((1 << (first >> 6)) - 1).reduce((sum, each) => sum * 256 + each, first & 63);
  };
  if (value() !== 1) throw new RangeError();
  const status = value();
  const end = value() + place;
  let retryAfter = null;
  while (place < end) {
    const [name, text] = [take(value()), take(value())].map((each) => String.fromCharCode(...each));
    if (name === "retry-after") retryAfter = text!;
  }
  return { status, retryAfter, body: new TextDecoder().decode(take(value())) };
}

/** A message for the gateway, and what opens its response. */
export interface Sealed {
  readonly capsule: Bytes;
  open(capsule: Bytes): Promise<Bytes>;
}

/** Seal a message, each time in a new context. `own` is for tests with known bytes. */
export async function seal(key: Key, message: Bytes, own?: CryptoKeyPair): Promise<Sealed> {
  const header = joined(Uint8Array.of(key.id), two(key.kem), two(1), two(1));
  const info = joined(ascii("message/bhttp request\0"), header);
  const context = await sender(key.kem, key.point, info, own);
  const secret = await context.secret("message/bhttp response", KEY);
  return {
    capsule: joined(header, context.enc, await context.seal(message)),
    open: async (capsule) => {
      const prk = await extract(joined(context.enc, capsule.slice(0, KEY)), secret);
      const opened = await expand(prk, ascii("key"), KEY);
      return gcm("decrypt", opened, await expand(prk, ascii("nonce"), NONCE), capsule.slice(KEY));
    },
  };
}
