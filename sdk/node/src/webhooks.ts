/** Verification of webhooks and test signatures. WebCrypto is asynchronous, so both functions return promises. */

import { ConfigurationError, PostriderError, SignatureError, TimestampError } from "./errors.js";
import { toBase64 } from "./operation.js";
import type { WebhookEvent } from "./generated/events.js";

/** Headers of a request: the Fetch API's, Node's, or any object or list of pairs. Names have any case. */
export type RequestHeaders =
  | Iterable<readonly [string, string]>
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export type RawBody = string | Uint8Array | ArrayBuffer;

export interface VerifyOptions {
  /** Largest difference between the webhook's time and the clock, in seconds (300). */
  tolerance?: number;
  /** The clock in Unix seconds; for tests. */
  now?: number;
}

const encoder = new TextEncoder();

/**
 * Verifies a webhook and returns its event. `rawBody` must be the body as received, not parsed JSON; during a rotation
 * `secrets` are the old and the new secret.
 *
 * Rejects with `SignatureError`; with `TimestampError` if only the time is wrong.
 */
export async function constructEvent(
  rawBody: RawBody, headers: RequestHeaders, secrets: string | readonly string[], options: VerifyOptions = {},
): Promise<WebhookEvent> {
  const body = bytesOf(rawBody);
  const keys = (typeof secrets === "string" ? [secrets] : [...(secrets ?? [])]).map((secret) => secret.trim()).filter(Boolean);
  if (keys.length === 0) throw new ConfigurationError("The secret of the webhook is missing: it begins with `whsec_` and is shown when the webhook is created");
  const signatures = signaturesOf(lowerCased(headers));
  if (signatures.length === 0) {
    throw new SignatureError("The request has no signature: it needs the header Service-Signature, or webhook-id, webhook-timestamp and webhook-signature");
  }
  const now = options.now ?? Date.now() / 1000;
  const tolerance = options.tolerance ?? 300;
  let stale: number | undefined;
  for (const signature of signatures) {
    for (const secret of keys) {
      const expected = await sign(signature.family, secret, signature.prefix, body);
      if (!expected || !signature.values.some((value) => areEqual(value, expected))) continue;
      if (Math.abs(now - signature.time) <= tolerance) return parse(body);
      stale = signature.time;
    }
  }
  if (stale !== undefined) {
    throw new TimestampError(`The webhook was signed at ${isoTime(stale)}, but the clock here says ${isoTime(now)}: more than ${tolerance} seconds apart. Correct the clock, or refuse the replayed request`);
  }
  throw new SignatureError("No signature of the request is valid: check that the secret belongs to this webhook and that the body is the raw one, not parsed and written again");
}

/** The headers of a webhook signed with `secret`, for tests of a receiver. `timestamp` is in Unix seconds. */
export async function generateTestHeader(
  { payload, secret, timestamp, id }: { payload: RawBody; secret: string; timestamp?: number; id?: string },
): Promise<Record<"Service-Signature" | "webhook-id" | "webhook-timestamp" | "webhook-signature", string>> {
  const body = bytesOf(payload);
  const time = String(timestamp ?? Math.floor(Date.now() / 1000));
  const eventId = id ?? "evt_test";
  const service = await sign("service", secret, `${time}.`, body);
  const standard = await sign("standard", secret, `${eventId}.${time}.`, body);
  if (!service || !standard) throw new ConfigurationError("The secret must be `whsec_` and base64");
  return {
    "Service-Signature": `t=${time},v1=${Array.from(service, (byte) => byte.toString(16).padStart(2, "0")).join("")}`,
    "webhook-id": eventId,
    "webhook-timestamp": time,
    "webhook-signature": `v1,${toBase64(standard)}`,
  };
}

interface Signature {
  family: "service" | "standard";
  time: number;
  /** Signed text before the body. */
  prefix: string;
  values: Uint8Array[];
}

function signaturesOf(headers: Map<string, string>): Signature[] {
  const found: Signature[] = [];
  const service = headers.get("service-signature");
  if (service !== undefined) {
    const parts = service.split(",").map((part) => part.trim());
    const time = parts.find((part) => part.startsWith("t="))?.slice(2) ?? "";
    found.push({ family: "service", time: unixTime(time), prefix: `${time}.`, values: values(parts, "v1=", fromHex) });
  }
  const [id, time, list] = ["id", "timestamp", "signature"].map((name) => headers.get(`webhook-${name}`));
  if (id !== undefined && time !== undefined && list !== undefined) {
    found.push({ family: "standard", time: unixTime(time), prefix: `${id}.${time}.`, values: values(list.split(" "), "v1,", fromBase64) });
  }
  return found;
}

function values(parts: string[], scheme: string, decode: (text: string) => Uint8Array | undefined): Uint8Array[] {
  return parts.filter((part) => part.startsWith(scheme)).flatMap((part) => decode(part.slice(scheme.length)) ?? []);
}

/** The HMAC-SHA256 of a family; undefined if the secret cannot be a key of it. */
async function sign(family: Signature["family"], secret: string, prefix: string, body: Uint8Array): Promise<Uint8Array | undefined> {
  const key = family === "service" ? encoder.encode(secret) : fromBase64(secret.replace(/^whsec_/, ""));
  if (!key?.length) return undefined;
  const start = encoder.encode(prefix);
  const content = new Uint8Array(start.length + body.length);
  content.set(start);
  content.set(body, start.length);
  const hmac = await crypto.subtle.importKey("raw", key as BufferSource, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return new Uint8Array(await crypto.subtle.sign("HMAC", hmac, content));
}

/** Compares in constant time for a length. */
function areEqual(one: Uint8Array, other: Uint8Array): boolean {
  if (one.length !== other.length) return false;
  let difference = 0;
  for (let index = 0; index < one.length; index++) difference |= (one[index] ?? 0) ^ (other[index] ?? 0);
  return difference === 0;
}

function parse(body: Uint8Array): WebhookEvent {
  try {
    const event = JSON.parse(new TextDecoder().decode(body));
    if (typeof event?.type === "string") return event;
  } catch {
    // Not JSON: refused below.
  }
  throw new PostriderError("The body has a valid signature, but is no event: JSON with a `type` was expected");
}

function bytesOf(body: RawBody): Uint8Array {
  if (typeof body === "string") return encoder.encode(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new ConfigurationError("The body must be the raw text or bytes of the request: in Express use express.raw({type: \"application/json\"}), in Next.js await request.text()");
}

function lowerCased(headers: RequestHeaders): Map<string, string> {
  const pairs = Symbol.iterator in headers ? [...headers] : Object.entries(headers);
  return new Map(pairs.flatMap(([name, value]) => (value === undefined ? [] : [[name.toLowerCase(), joined(name, value)]])));
}

/** Node has a list for a header that occurs several times. */
function joined(name: string, value: string | readonly string[]): string {
  return typeof value === "string" ? value : value.join(name.toLowerCase() === "service-signature" ? "," : " ");
}

function unixTime(text: string): number {
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
}

function isoTime(seconds: number): string {
  const time = new Date(seconds * 1000);
  return Number.isNaN(time.getTime()) ? String(seconds) : time.toISOString();
}

function fromHex(text: string): Uint8Array | undefined {
  if (!/^([0-9a-f]{2})+$/i.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function fromBase64(text: string): Uint8Array | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}
