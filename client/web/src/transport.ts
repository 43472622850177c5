// Sending to the collector: POST {endpoint}/v1/reports, and what its reply means.

/** A collector's reply: HTTP status (0: none came), body, and the Retry-After header. */
export interface Reply {
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | null;
}

/** What a reply says about its batch. */
export interface Outcome {
  /** The reason for each place in the batch that was left out; without it nothing is counted. */
  readonly rejected?: ReadonlyMap<number, string>;
  /** Why the batch is refused for good. */
  readonly refused?: string;
  /** The kind of trouble: the collector's, or something else's that responded. */
  readonly trouble?: "network" | "endpoint";
  /** Seconds that the collector asks to wait. */
  readonly retryAfter: number;
}

/** Seconds after which an attempt to send is given up. */
const TIMEOUT = 30;
/** Bytes: browsers refuse larger bodies to requests that outlive their page. */
const KEEPALIVE = 60 * 1024;
const LARGEST_REPLY = 1 << 18;

/** Where batches are posted. Throws a TypeError if the endpoint cannot be a collector's. */
export function reportsUrl(endpoint: string): string {
  let url: URL | undefined;
  try {
    url = new URL(endpoint);
  } catch {
    // Not even an address.
  }
  // Plain HTTP would show the reports, and the page's visits, to the network.
  const isPrivate =
    url?.protocol === "https:" ||
    (url?.protocol === "http:" && /^(localhost|127\.[\d.]+|\[::1\])$/.test(url.hostname));
  if (!isPrivate || url!.username || url!.password || /[?#]/.test(endpoint))
    throw new TypeError(
      "endpoint must be an address like https://telemetry.example.com, without a name, query or " +
        "fragment; http:// is only for loopback",
    );
  return url!.href.replace(/\/*$/, "/v1/reports");
}

/** Throws a TypeError if this cannot be a collector's ingest key. */
export function checkIngestKey(key: string): void {
  if (!/^[A-Za-z0-9._~+/-]{16,256}=*$/.test(key))
    throw new TypeError(
      "ingestKey must have 16 to 256 letters, digits and - . _ ~ + /: copy it from the " +
        "collector's DENIABLE_INGEST_KEYS",
    );
}

/** Send a batch, and return the reply whatever its status. */
export async function post(url: string, body: string, ingestKey?: string): Promise<Reply> {
  try {
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (ingestKey) headers.Authorization = `Bearer ${ingestKey}`;
    const timeout = new AbortController();
    const timer = setTimeout(() => timeout.abort(), TIMEOUT * 1000);
    try {
      const response = await fetch(url, {
        method: "POST",
        body,
        headers,
        keepalive: body.length < KEEPALIVE,
        // No cookie, no address of the page, and no way to a place that nobody configured.
        credentials: "omit",
        referrerPolicy: "no-referrer",
        redirect: "manual",
        signal: timeout.signal,
      });
      return {
        status: response.status,
        body: await response.text(),
        retryAfter: response.headers.get("Retry-After"),
      };
    } finally {
      clearTimeout(timer);
    }
  } catch {
    return { status: 0, body: "", retryAfter: null };
  }
}

/** Send a batch in the last moment of a page. There is no reply. Returns whether it was accepted
 * for sending. */
export function beacon(url: string, body: string, ingestKey?: string): boolean {
  // As text, because a beacon of JSON to another origin is dropped after its preflight.
  const address = ingestKey ? `${url}?key=${encodeURIComponent(ingestKey)}` : url;
  return (navigator as Partial<Navigator>).sendBeacon?.(address, body) ?? false;
}

/** What a reply says about a batch: counted (202), refused for good, or to be sent again. */
export function readReply({ status, body, retryAfter }: Reply, id: string, now: number): Outcome {
  const text = retryAfter?.trim() ?? "";
  const asked = /^\d+$/.test(text) ? +text.slice(0, 9) : Date.parse(text) / 1000 - now;
  const wait = { retryAfter: asked > 0 ? asked : 0 };
  if (!status) return { trouble: "network", ...wait };
  try {
    if (body.length <= LARGEST_REPLY) {
      // eslint-disable-next-line @typescript-eslint/no-explicit-any
      const document: any = JSON.parse(body);
      /* eslint-disable @typescript-eslint/no-unsafe-member-access */
      if (status === 202 && document.batch === id)
        return {
          ...wait,
          rejected: new Map(
            // What a server writes is not repeated in lists and logs, unless it is a code.
            (document.rejected as { index: number; reason: string }[]).map(({ index, reason }) => [
              index,
              /^[a-z_]{1,64}$/.test(reason) ? reason : "unknown_reason",
            ]),
          ),
        };
      const problem = /^urn:deniable:problem:([a-z0-9-]{1,64})$/.exec(document.type as string)?.[1];
      if (problem)
        return status >= 400 && status < 500 && FINAL.test(problem)
          ? { refused: problem, retryAfter: 0 }
          : { trouble: "network", ...wait };
    }
  } catch {
    // Not a collector's.
  }
  return { trouble: "endpoint", ...wait };
}

/** The problems that sending the same bytes again cannot avoid (docs/protocol.md). */
const FINAL = /^(not-json|not-gzip|bad-batch-id|malformed-batch|body-too-large|too-many-(reports|metrics))$/;
