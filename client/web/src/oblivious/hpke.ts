// HPKE (RFC 9180) in base mode, the sender's side, by WebCrypto: X25519 or P-256, HKDF-SHA256, AES-128-GCM.

/** Bytes as WebCrypto takes them. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** The key exchanges by their number, and the bytes of their public keys. */
export const KEMS: Readonly<Record<number, { name: AlgorithmIdentifier & object; size: number }>> = {
  0x20: { name: { name: "X25519" }, size: 32 },
  0x10: { name: { name: "ECDH", namedCurve: "P-256" } as AlgorithmIdentifier & object, size: 65 },
};

const HASH = 32;
const KEY = 16;
const NONCE = 12;

/** What a sealed message leaves behind: the other side's half, and secrets of this exchange. */
export interface Context {
  /** The public key that was made for this message. */
  readonly enc: Bytes;
  /** Seal the one message. */
  seal(message: Bytes): Promise<Bytes>;
  /** A secret of this exchange under a label. */
  secret(label: string, size: number): Promise<Bytes>;
}

/** The bytes of a text in ASCII. */
export const ascii = (text: string): Bytes => Uint8Array.from(text, (each) => each.charCodeAt(0));

/** All pieces in a row. */
export function joined(...pieces: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(pieces.reduce((sum, each) => sum + each.length, 0));
  let place = 0;
  for (const each of pieces) {
    whole.set(each, place);
    place += each.length;
  }
  return whole;
}

/** A number in two bytes. */
export const two = (number: number): Bytes => Uint8Array.of(number >> 8, number & 255);

/** HMAC-SHA256, which is HKDF's first step; an empty salt is as good as zeros. */
export async function extract(salt: Bytes, secret: Bytes): Promise<Bytes> {
  const raw = salt.length ? salt : new Uint8Array(HASH);
  const how = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", raw, how, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", key, secret));
}

/** HKDF's second step, for up to 32 bytes. */
export const expand = async (key: Bytes, info: Bytes, size: number): Promise<Bytes> =>
  (await extract(key, joined(info, Uint8Array.of(1)))).slice(0, size);

/** AES-128-GCM. */
export async function gcm(
  way: "encrypt" | "decrypt",
  raw: Bytes,
  iv: Bytes,
  message: Bytes,
): Promise<Bytes> {
  const key = await crypto.subtle.importKey("raw", raw, "AES-GCM", false, [way]);
  return new Uint8Array(await crypto.subtle[way]({ name: "AES-GCM", iv }, key, message));
}

const labels = (suite: Bytes) => ({
  extract: (salt: Bytes, label: string, secret: Bytes) =>
    extract(salt, joined(ascii("HPKE-v1"), suite, ascii(label), secret)),
  expand: (key: Bytes, label: string, info: Bytes, size: number) =>
    expand(key, joined(two(size), ascii("HPKE-v1"), suite, ascii(label), info), size),
});

/** A context for one message to the holder of this public key. `own` is for tests with known bytes.
 * Rejects if the key is none. */
export async function sender(
  kem: number,
  receiver: Bytes,
  info: Bytes,
  own?: CryptoKeyPair,
): Promise<Context> {
  const { subtle } = crypto;
  const { name } = KEMS[kem]!;
  const pair = own ?? ((await subtle.generateKey(name, false, ["deriveBits"])) as CryptoKeyPair);
  const enc = new Uint8Array(await subtle.exportKey("raw", pair.publicKey));
  const theirs = await subtle.importKey("raw", receiver, name, true, []);
  const how = { ...name, public: theirs };
  const shared = new Uint8Array(await subtle.deriveBits(how, pair.privateKey, 8 * HASH));
  const inner = labels(joined(ascii("KEM"), two(kem)));
  const nothing = new Uint8Array();
  const first = await inner.extract(nothing, "eae_prk", shared);
  const dh = await inner.expand(first, "shared_secret", joined(enc, receiver), HASH);
  const outer = labels(joined(ascii("HPKE"), two(kem), two(1), two(1)));
  const schedule = joined(
    Uint8Array.of(0),
    await outer.extract(nothing, "psk_id_hash", nothing),
    await outer.extract(nothing, "info_hash", info),
  );
  const secret = await outer.extract(dh, "secret", nothing);
  const key = await outer.expand(secret, "key", schedule, KEY);
  const nonce = await outer.expand(secret, "base_nonce", schedule, NONCE);
  const exporter = await outer.expand(secret, "exp", schedule, HASH);
  return {
    enc,
    seal: (message) => gcm("encrypt", key, nonce, message),
    secret: (label, size) => outer.expand(exporter, "sec", ascii(label), size),
  };
}
