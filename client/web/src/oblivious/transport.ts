// Sends batches in two hops (docs/two-hops.md). The bundle `deniable/oblivious` has this in the place of
// ../transport.ts.

import { type Outcome, readReply } from "../transport.ts";
import { type Key, readAnswer, request, seal, verified } from "./capsules.ts";

const PATH = "/.well-known/ohttp-gateway";
const KEY_PROBLEM = "https://iana.org/assignments/http-problem-types#ohttp-key";
const DAY = 86_400;
const TIMEOUT = 30_000;
/** Browsers refuse larger bodies to requests that outlive their page. */
const KEEPALIVE = 6e4;

interface Route {
  readonly relay: string;
  readonly gateway: string;
  key?: Key;
  until: number;
}

const routes = new Map<string, Route>();

/** Send what is for this collector through a relay from now on. */
export function route(endpoint: string, relay: string, gateway: string): void {
  const until = 0;
  routes.set(endpoint.replace(/\/*$/, "/v1/reports"), {
    relay: relay.replace(/\/*$/, PATH),
    gateway,
    until,
  });
}

/** Send a batch, and say what the reply means. What a relay says never drops a batch. */
export async function post(
  url: string,
  id: string,
  body: string,
  ingestKey: string | undefined,
  clock: () => number,
): Promise<Outcome> {
  const hops = routes.get(url);
  // A client without a relay sends nothing, rather than in one hop.
  if (!hops) return { trouble: "endpoint" };
  try {
    const message = request(new URL(url), body, ingestKey);
    for (let again = false; ; again = true) {
      const key = await keyOf(hops, clock());
      const sealed = await seal(key, message);
      const headers = { "Content-Type": "message/ohttp-req" };
      const reply = await ask(hops.relay, { method: "POST", body: sealed.capsule, headers });
      if (reply.status === 200) {
        const capsule = new Uint8Array(await reply.arrayBuffer());
        const answer = readAnswer(await sealed.open(capsule));
        return readReply(answer.status, answer.body, answer.retryAfter, id, clock());
      }
      const type = ((await reply.json()) as { type?: unknown }).type;
      if (type !== KEY_PROBLEM || again) {
        const retryAfter = Number(reply.headers.get("Retry-After")) || undefined;
        return { trouble: "network", ...(retryAfter && { retryAfter }) };
      }
      // The gateway has changed its keys.
      hops.until = 0;
    }
  } catch {
    return { trouble: "network" };
  }
}

/** A page that ends cannot seal: its reports stay stored, and are sent when it is opened again. */
export const beacon = () => false;

async function keyOf(hops: Route, now: number): Promise<Key> {
  if (!hops.key || now >= hops.until) {
    const reply = await ask(hops.relay, {});
    const list = new Uint8Array(await reply.arrayBuffer());
    const keys = await verified(hops.gateway, list, reply.headers.get("Deniable-Signature") ?? "");
    hops.key = keys[0]!;
    hops.until = now + DAY;
  }
  return hops.key;
}

const ask = (url: string, more: RequestInit & { body?: Uint8Array<ArrayBuffer> }) =>
  fetch(url, {
    ...more,
    cache: "no-store",
    keepalive: (more.body?.length ?? 0) < KEEPALIVE,
    credentials: "omit",
    referrerPolicy: "no-referrer",
    redirect: "manual",
    signal: AbortSignal.timeout?.(TIMEOUT),
  });
