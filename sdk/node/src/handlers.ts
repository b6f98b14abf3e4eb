/**
 * Webhook receivers for web frameworks. Both need the raw body; the handler runs after the signature is verified, and the
 * server repeats the webhook if the handler throws.
 */

import { ConfigurationError, SignatureError } from "./errors.js";
import type { WebhookEvent } from "./generated/events.js";
import { constructEvent, type VerifyOptions } from "./webhooks.js";

const BODY_BYTES_MAX = 1 << 20;

export type WebhookListener = (event: WebhookEvent) => unknown;

/**
 * For frameworks with the Fetch API's `Request`: Next.js, Remix, Hono, SvelteKit, Bun, Deno, edge runtimes.
 *
 *     export const POST = webhookHandler(process.env.WEBHOOK_SECRET, async (event) => { … });
 */
export function webhookHandler(
  secrets: string | readonly string[] | undefined, listener: WebhookListener, options?: VerifyOptions,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = await collected(request.body ?? []);
    const answer = await receive(body, request.headers, secrets, listener, options);
    return new Response(answer.text, { status: answer.status, headers: { "content-type": "text/plain; charset=utf-8" } });
  };
}

/** A request of Node's server or of Express, as far as it is used. */
export interface NodeRequest extends AsyncIterable<Uint8Array | string> {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Set by a body parser. */
  body?: unknown;
}

export interface NodeResponse {
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(text?: string): unknown;
}

/**
 * For Express, Connect and Node's own server. It reads the body itself; put it before `express.json()`, or use
 * `express.raw({type: "application/json"})`.
 *
 *     app.post("/webhooks", webhookMiddleware(process.env.WEBHOOK_SECRET, async (event) => { … }));
 */
export function webhookMiddleware(
  secrets: string | readonly string[] | undefined, listener: WebhookListener, options?: VerifyOptions,
): (request: NodeRequest, response: NodeResponse, next?: (error: unknown) => void) => Promise<void> {
  return async (request, response, next) => {
    try {
      const isRaw = typeof request.body === "string" || request.body instanceof Uint8Array;
      if (request.body !== undefined && !isRaw && Object.keys(request.body ?? {}).length > 0) {
        throw new ConfigurationError("The body was already parsed: put the webhook's route before express.json(), or give it express.raw({type: \"application/json\"})");
      }
      const body = isRaw ? (request.body as string | Uint8Array) : await collected(request);
      const answer = await receive(body, request.headers, secrets, listener, options);
      response.statusCode = answer.status;
      response.setHeader("content-type", "text/plain; charset=utf-8");
      response.end(answer.text);
    } catch (error) {
      if (next) return next(error);
      response.statusCode = 500;
      response.end();
    }
  };
}

async function receive(
  body: Uint8Array | string | undefined, headers: Parameters<typeof constructEvent>[1], secrets: string | readonly string[] | undefined,
  listener: WebhookListener, options?: VerifyOptions,
): Promise<{ status: number; text: string }> {
  if (body === undefined) return { status: 413, text: "The body is larger than 1 MiB" };
  let event: WebhookEvent;
  try {
    event = await constructEvent(body, headers, secrets ?? "", options);
  } catch (error) {
    if (error instanceof SignatureError) return { status: 401, text: error.message };
    throw error;
  }
  await listener(event);
  return { status: 200, text: "" };
}

/** All bytes; undefined if there are more than a webhook can have. */
async function collected(body: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array>): Promise<Uint8Array | undefined> {
  const chunks: (Uint8Array | string)[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer());
}
