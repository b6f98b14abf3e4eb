/** Verification of webhooks and test signatures. WebCrypto is asynchronous, so both functions return promises. */

import { ConfigurationError, SignatureError, TimestampError } from "./errors.js";
import type { WebhookEvent } from "./generated/events.js";
import { toBase64 } from "./operation.js";

/** Headers of a request: the Fetch API's, Node's, or any object or list of pairs. Names have any case. */
export type RequestHeaders = Iterable<readonly [string, string]> | Readonly<Record<string, string | readonly string[] | undefined>>;

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
  const keys = [secrets].flat().map((secret) => secret?.trim()).filter(Boolean);
  if (keys.length === 0) throw new ConfigurationError("The secret of the webhook is missing: it begins with `whsec_` and is shown when the webhook is created");
  const signatures = signaturesOf(lowerCased(headers));
  if (signatures.length === 0) {
    throw new SignatureError("The request has no signature: it needs the header Service-Signature, or webhook-id, webhook-timestamp and webhook-signature");
  }
  const { now = Date.now() / 1000, tolerance = 300 } = options;
  let stale: number | undefined;
  for (const { family, time, prefix, candidates } of signatures) {
    for (const secret of keys) {
      const expected = await sign(family, secret, prefix, body);
      if (!candidates.some((candidate) => areEqual(candidate, expected))) continue;
      if (Math.abs(now - Number(time)) <= tolerance) return parse(body);
      stale = Number(time);
    }
  }
  if (stale === undefined) {
    throw new SignatureError("No signature of the request is valid: check that the secret belongs to this webhook and that the body is the raw one, not parsed and written again");
  }
  throw new TimestampError(
    `The webhook was signed at ${isoTime(stale)}, but the clock here says ${isoTime(now)}: more than ${tolerance} seconds apart. Correct the clock, or refuse the replayed request`,
  );
}

/** The headers of a webhook signed with `secret`, for tests of a receiver. `timestamp` is in Unix seconds. */
export async function generateTestHeader(
  { payload, secret, timestamp = Math.floor(Date.now() / 1000), id = "evt_test" }: { payload: RawBody; secret: string; timestamp?: number; id?: string },
): Promise<Record<"Service-Signature" | "webhook-id" | "webhook-timestamp" | "webhook-signature", string>> {
  const body = bytesOf(payload);
  return {
    "Service-Signature": `t=${timestamp},${await sign("service", secret, `${timestamp}.`, body)}`,
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": await sign("standard", secret, `${id}.${timestamp}.`, body),
  };
}

/** `prefix` is the signed text before the body. */
interface Signature {
  family: "service" | "standard";
  time: string;
  prefix: string;
  candidates: string[];
}

function signaturesOf(headers: Map<string, string>): Signature[] {
  const found: Signature[] = [];
  const parts = headers.get("service-signature")?.split(",").map((part) => part.trim()) ?? [];
  const signedAt = parts.find((part) => part.startsWith("t="))?.slice(2) ?? "";
  found.push({ family: "service", time: signedAt, prefix: `${signedAt}.`, candidates: parts.filter((part) => part.startsWith("v1=")) });
  const [id = "", time = "", list = ""] = ["id", "timestamp", "signature"].map((name) => headers.get(`webhook-${name}`));
  // Repeated headers are joined by commas.
  const candidates = [...list.matchAll(/(?<=^|[\s,])v1,[A-Za-z0-9+/=]+/g)].map(([text]) => text);
  found.push({ family: "standard", time, prefix: `${id}.${time}.`, candidates });
  return found.filter(({ time, candidates }) => /^\d{1,12}$/.test(time) && candidates.length > 0);
}

/** The HMAC-SHA256 as it is written in a header of the family; empty if the secret cannot be a key of it. */
async function sign(family: Signature["family"], secret: string, prefix: string, body: Uint8Array): Promise<string> {
  const key = family === "service" ? encoder.encode(secret) : fromBase64(secret.replace(/^whsec_/, ""));
  if (key.length === 0) return "";
  const hmac = await crypto.subtle.importKey("raw", key as BufferSource, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const content = await new Blob([prefix, body as BlobPart]).arrayBuffer();
  const bytes = new Uint8Array(await crypto.subtle.sign("HMAC", hmac, content));
  if (family === "standard") return `v1,${toBase64(bytes)}`;
  return `v1=${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

/** Compares in constant time for a length. */
function areEqual(candidate: string, expected: string): boolean {
  if (expected === "" || candidate.length !== expected.length) return false;
  let difference = 0;
  for (let index = 0; index < expected.length; index++) difference |= candidate.charCodeAt(index) ^ expected.charCodeAt(index);
  return difference === 0;
}

function parse(body: Uint8Array): WebhookEvent {
  try {
    const event = JSON.parse(new TextDecoder().decode(body));
    const data = event?.data;
    if (typeof event?.type === "string" && typeof data === "object" && data !== null && !Array.isArray(data)) return event;
  } catch {
    // Not JSON: refused below.
  }
  throw new SignatureError("The body has a valid signature, but is no event: JSON with `type` and `data` was expected");
}

function bytesOf(body: RawBody): Uint8Array {
  if (typeof body === "string") return encoder.encode(body);
  if (body instanceof Uint8Array || body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new ConfigurationError("The body must be the raw text or bytes of the request: in Express use express.raw({type: \"application/json\"}), in Next.js await request.text()");
}

/** Headers by name in lower case. The values of one that occurs several times are joined by commas (RFC 9110, 5.2). */
function lowerCased(headers: RequestHeaders): Map<string, string> {
  const pairs: Iterable<readonly [string, string | readonly string[] | undefined]> = Symbol.iterator in headers ? headers : Object.entries(headers);
  const joined = new Map<string, string>();
  for (const [name, value] of pairs) {
    const earlier = joined.get(name.toLowerCase());
    const values = [earlier ?? [], value ?? []].flat();
    if (values.length > 0) joined.set(name.toLowerCase(), values.join(", "));
  }
  return joined;
}

function isoTime(seconds: number): string {
  return Math.abs(seconds) < 1e12 ? new Date(seconds * 1000).toISOString() : String(seconds);
}

function fromBase64(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}
