// Sending to the collector: POST {endpoint}/v1/reports, and what its reply means.

/** What a reply says about its batch: one of the first three. */
export interface Outcome {
  /** It is counted, but for these: place in the batch -> reason. */
  readonly rejected?: Readonly<Record<number, string>>;
  /** Why it is refused for good. */
  readonly refused?: string;
  /** It is to be sent again: there was no reply or a busy collector, or something else responded. */
  readonly trouble?: "network" | "endpoint";
  /** Seconds that the collector asks to wait. */
  readonly retryAfter?: number;
}

/** The addresses of collector and relay, and the gateway's identity. */
export interface Hops {
  /** The collector's address; without one, reports wait. */
  readonly endpoint: string;
  /** The address of a relay, which somebody else runs: reports go in two hops
   * (docs/how-to/two-hops.md), and nothing is sent to the endpoint itself. */
  readonly relay: string;
  /** The gateway's identity, as `deniable relay key show` prints it; with `relay`. */
  readonly gateway: string;
}

/** An address of a collector or relay: https, or http on this machine. Plain HTTP would show the
 * reports, and the page's visits, to the network. */
export const ADDRESS = /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1|\[::1])(?![^:/]))[^@?#\s]*$/;
/** Milliseconds after which an attempt to send is given up. */
export const TIMEOUT = 30_000;
/** The most bytes of a reply that are read. */
const LONGEST_REPLY = 1 << 18;
/** Browsers refuse larger bodies to requests that outlive their page. */
export const KEEPALIVE = 6e4;

/** A status and a problem of the collector. In groups: whether the status is 4xx, and the problem if
 * sending the same bytes again cannot avoid it: not-json, not-gzip, bad-batch-id, malformed-batch,
 * body-too-large, too-many-reports, too-many-metrics. */
const PROBLEM = /^(4?)\d+urn:deniable:problem:((not-[jg]|bad-b|malf|body-|too-many-(m|rep))[a-z-]+$)?/;

/** Send a batch, and say what the reply means. */
export async function post(
  url: string,
  id: string,
  body: string,
  key: string | undefined,
  clock: () => number,
): Promise<Outcome> {
  try {
    const response = await fetch(url, {
      method: "POST",
      body,
      // The body goes as text, which needs no preflight; a key does.
      headers: key ? { Authorization: `Bearer ${key}` } : {},
      keepalive: body.length < KEEPALIVE,
      // No cookie, no address of the page, and no way to a place that nobody configured.
      credentials: "omit",
      referrerPolicy: "no-referrer",
      redirect: "manual",
      signal: AbortSignal.timeout?.(TIMEOUT),
    });
    const { status, headers } = response;
    const text = await new Blob(await read(response)).text();
    return readReply(status, text, headers.get("Retry-After"), id, clock());
  } catch {
    return { trouble: "network" };
  }
}

/** The content of a reply, in pieces. Rejects if it is longer than LONGEST_REPLY: whoever responds
 * without an end would fill the memory of the page. */
export async function read({ body }: Response): Promise<Uint8Array<ArrayBuffer>[]> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  // A reply without content has no body.
  const reader = body?.getReader();
  let left = LONGEST_REPLY;
  for (let piece; (piece = (await reader?.read())?.value); pieces.push(piece))
    if ((left -= piece.length) < 0) {
      void reader!.cancel();
      throw RangeError();
    }
  return pieces;
}

/** Send a batch in the last moment of a page. There is no reply. Returns whether it was accepted
 * for sending. */
export const beacon = (url: string, body: string, key: string | undefined) =>
  // As text, because a beacon of JSON to another origin is dropped after its preflight.
  navigator.sendBeacon?.(url + (key ? `?key=${encodeURIComponent(key)}` : ""), body);

/** A collector's 202, or its problem. */
interface Body {
  readonly batch: string;
  readonly rejected: readonly { index: number; reason: string }[];
  readonly type: string;
}

/** What a reply says about a batch: counted (202), refused for good, or to be sent again. */
export function readReply(
  status: number,
  body: string,
  header: string | null,
  id: string,
  now: number,
): Outcome {
  // Seconds, or a date.
  const retryAfter = +header! || Date.parse(header!) / 1000 - now;
  try {
    const { batch, rejected, type } = JSON.parse(body) as Body;
    if (batch === id && status === 202) {
      const left: Record<number, string> = {};
      for (const { index, reason } of rejected)
        // What a server writes is not repeated in lists and logs, unless it is a code.
        left[index] = /^[a-z_]{1,64}$/.test(reason) ? reason : "unknown_reason";
      return { rejected: left };
    }
    const [found, final, refused] = PROBLEM.exec(`${status}${type}`) ?? [];
    if (refused && final) return { refused };
    if (found) return { trouble: "network", retryAfter };
  } catch {
    // Not a collector's.
  }
  return { trouble: "endpoint", retryAfter };
}
