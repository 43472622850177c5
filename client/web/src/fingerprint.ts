import type { Declared } from "./metric.ts";
import type { Segments } from "./segments.ts";
import { hash, type Sha2 } from "./sha2.ts";

const SHA256: Sha2 = {
  bits: 32,
  rounds: 64,
  turns: [[2n, 13n, 22n], [6n, 11n, 25n], [7n, 18n, 3n], [17n, 19n, 10n]],
  word: (view, at) => BigInt(view.getUint32(at)),
};

/** SHA-256 in hexadecimal, synchronous. */
export const sha256 = (message: Uint8Array): string =>
  hash(SHA256, message)
    .map((word) => word.toString(16).padStart(8, "0"))
    .join("");

/** The fingerprint of a metric's scheme: it names the tally that the reports belong to. */
export function fingerprint(
  { type, mechanism, parameters, values, segments: names = [] }: Declared,
  declared?: Segments,
): string {
  const sorted = Object.fromEntries(
    Object.entries(parameters).sort(([one], [other]) => (one < other ? -1 : 1)),
  );
  const segments = names.map((name) => ({ name, values: declared?.get(name)?.values }));
  const canonical = JSON.stringify({
    mechanism,
    parameters: sorted,
    ...(names.length && { segments }),
    type,
    values,
  });
  return sha256(new TextEncoder().encode(canonical)).slice(0, 12);
}
