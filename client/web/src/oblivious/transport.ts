// Sends batches in two hops (docs/how-to/two-hops.md), in the place of ../transport.ts.

import { ADDRESS, type Hops, KEEPALIVE, type post as directly, read, readReply, TIMEOUT } from "../transport.ts";
import { type Key, readAnswer, request, seal, type Sealed, verified } from "./capsules.ts";
import { type Bytes, joined } from "./hpke.ts";

const PATH = "/.well-known/ohttp-gateway";
const KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key";
const DAY = 86_400;

interface Route {
  readonly relay: string;
  readonly gateway: string;
  key?: Key;
  /** The POSIX time until which the key is used. */
  until: number;
  /** Seconds that the last reply of the relay asks to wait. */
  wait: number;
}

const routes = new Map<string, Route>();

/** Capsules of batches that a beacon may have to send, by the body of the batch. */
const capsules = new Map<string, Bytes>();

/** Send what is for this collector through a relay from now on. Throws a TypeError if an option is
 * none, or both addresses name one server. */
export function route({ endpoint, relay, gateway }: Hops): void {
  const must = (holds: boolean, told: string): void => {
    if (!holds) throw new TypeError(DEVELOPMENT ? told : "");
  };
  must(ADDRESS.test(relay), "relay must be an https:// address, without a name, query or fragment");
  must(
    new URL(relay).host !== new URL(endpoint).host,
    "relay and endpoint have the same address: the relay must be another server",
  );
  must(/^[\w-]{87}$/.test(gateway), "gateway must be the 87 letters that `deniable relay key show` prints");
  routes.set(endpoint.replace(/\/*$/, "/v1/reports"), {
    relay: relay.replace(/\/*$/, PATH),
    gateway,
    until: 0,
    wait: 0,
  });
}

/** Send a batch, and say what the reply means. What a relay says never drops a batch. */
export const post: typeof directly = async (url, id, body, ingestKey, clock) => {
  capsules.delete(body);
  const hops = routes.get(url);
  // A client without a relay sends nothing, rather than in one hop.
  if (!hops) return { trouble: "endpoint" };
  hops.wait = 0;
  try {
    for (let again = false; ; again = true) {
      const sealed = await sealFor(hops, url, body, ingestKey, clock);
      const headers = { "Content-Type": "message/ohttp-req" };
      const [status, content] = await ask(hops, { method: "POST", body: sealed.capsule, headers });
      if (status === 200) {
        const answer = readAnswer(await sealed.open(content));
        return readReply(answer.status, answer.body, answer.retryAfter, id, clock());
      }
      const { type } = JSON.parse(new TextDecoder().decode(content)) as { type?: unknown };
      if (type !== KEY_PROBLEM || again) break;
      // The gateway has changed its keys.
      hops.until = 0;
    }
  } catch {
    // There was no reply, or none of a relay.
  }
  return { trouble: "network", retryAfter: hops.wait };
};

/** Seal a batch ahead for a beacon: a page that ends cannot wait for that. If it cannot be sealed,
 * the batch stays stored, and is sent when the page is opened again. */
export async function prepare(
  url: string,
  body: string,
  ingestKey: string | undefined,
  clock: () => number,
): Promise<void> {
  try {
    capsules.set(body, (await sealFor(routes.get(url)!, url, body, ingestKey, clock)).capsule);
  } catch {
    // The relay is away, or tells no keys.
  }
}

/** Send a batch that was sealed ahead, in the last moment of a page. Returns whether it was accepted
 * for sending. */
export function beacon(url: string, body: string): boolean {
  const capsule = capsules.get(body);
  // As text, because a beacon of another type to another origin is dropped after its preflight.
  const sent =
    capsule && navigator.sendBeacon?.(routes.get(url)!.relay, new Blob([capsule], { type: "text/plain" }));
  return !!sent && capsules.delete(body);
}

/** A capsule of a batch, for the gateway's newest key. */
async function sealFor(
  hops: Route,
  url: string,
  body: string,
  ingestKey: string | undefined,
  clock: () => number,
): Promise<Sealed> {
  if (!hops.key || clock() >= hops.until) {
    const [, list, headers] = await ask(hops, {});
    const keys = await verified(hops.gateway, list, headers.get("Deniable-Signature") ?? "");
    hops.key = keys[0]!;
    hops.until = clock() + DAY;
  }
  return seal(hops.key, request(new URL(url), body, ingestKey));
}

/** The relay's reply: its status, content and headers. */
async function ask(
  hops: Route,
  more: RequestInit & { body?: Bytes },
): Promise<[status: number, content: Bytes, headers: Headers]> {
  const reply = await fetch(hops.relay, {
    ...more,
    cache: "no-store",
    keepalive: (more.body?.length ?? 0) < KEEPALIVE,
    credentials: "omit",
    referrerPolicy: "no-referrer",
    redirect: "manual",
    signal: AbortSignal.timeout?.(TIMEOUT),
  });
  const { status, headers } = reply;
  hops.wait = +headers.get("Retry-After")!;
  return [status, joined(...(await read(reply))), headers];
}
