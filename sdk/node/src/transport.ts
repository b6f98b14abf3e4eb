/**
 * Sends the request of an operation, with retries until the deadline.
 *
 *   call ─► fetch ─► read the body, up to a limit ─► Answer
 *    ▲        │              │
 *    └─ wait ◄┴─ isRetried ◄─┘
 */

import { CallSignal } from "./call_signal.js";
import { connectionError } from "./connection_error.js";
import {
  ApiError, ConnectionError, type Headers, NotFoundError, type PostriderError, SendUnconfirmedError, UnexpectedResponseError,
} from "./errors.js";
import { apiError, approvalRequired, isRetriedAnswer } from "./generated/error_codes.js";
import type { EmailDetail } from "./generated/types.js";
import { SERVICE_VERSION, VERSION } from "./generated/version.js";
import { buildRequest, type Operation } from "./operation.js";
import {
  type CallOptions, checkedBaseUrl, checkedHeaders, checkedKey, checkedRetries, checkedTimeout, type ClientOptions, type Clock, environment, SYSTEM_CLOCK,
} from "./options.js";
import { withoutReact } from "./react.js";

const ANSWER_BYTES_MAX = 256 << 20;
const ERROR_BYTES_MAX = 1 << 20;
const GET_EMAIL: Operation = {
  name: "emails.get", method: "GET", path: "/emails/{id}", query: [], body: false, idempotent: false, retry: true, mediaType: "application/json",
};

/** Metadata of the last answer. */
export interface LastResponse {
  status: number;
  requestId: string;
  /** `reset` is in seconds. Null if the server has no rate limit. */
  rateLimit: { limit: number; remaining: number; reset: number } | null;
  headers: Headers;
}

export interface Answer<T> {
  data: T;
  headers: Headers;
  requestId: string;
  warnings: string[];
}

export class Transport {
  readonly #key: string;
  readonly #options: ClientOptions;
  readonly #userAgent: string;
  readonly clock: Clock;
  readonly baseUrl: string;
  lastResponse: LastResponse | null = null;

  constructor(key: string | undefined, options: ClientOptions) {
    this.#key = checkedKey(key ?? environment("POSTRIDER_API_KEY"));
    this.baseUrl = checkedBaseUrl(options.baseUrl ?? environment("POSTRIDER_BASE_URL"), options.allowInsecureHttp ?? false);
    this.#userAgent = `postrider-node/${VERSION}${options.userAgent ? ` ${options.userAgent}` : ""}`;
    this.#options = { ...options };
    this.clock = { ...SYSTEM_CLOCK, ...options.clock };
    checkedTimeout(options.timeout ?? 1);
    checkedHeaders(this.#headers(""));
    this.maxRetries({});
  }

  maxRetries(options: CallOptions): number {
    return checkedRetries(options.maxRetries ?? this.#options.maxRetries ?? 2);
  }

  /** Carries an operation out. Rejects with a `PostriderError`. */
  async call<T>(operation: Operation, path: readonly string[], params: unknown, options: CallOptions = {}): Promise<Answer<T>> {
    const { url, body } = buildRequest(this.baseUrl, operation, path, await withoutReact(operation.name, params));
    const headers = this.#headers(operation.mediaType, options.headers);
    if (body !== undefined) headers["content-type"] = "application/json";
    if (options.ifMatch !== undefined) headers["if-match"] = options.ifMatch;
    const idempotencyKey = options.idempotencyKey ?? headers["idempotency-key"] ?? (operation.idempotent ? crypto.randomUUID() : undefined);
    if (idempotencyKey !== undefined) headers["idempotency-key"] = idempotencyKey;
    const request = { method: operation.method, headers: checkedHeaders(headers), body };
    const maxRetries = this.maxRetries(options);
    const timeout = checkedTimeout(options.timeout ?? this.#options.timeout ?? 30_000);
    const deadline = this.clock.now() + timeout;
    const call = new CallSignal(options.signal, timeout);
    try {
      for (let retries = 0; ; retries++) {
        try {
          return await this.#attempt<T>(operation, url, request, call);
        } catch (error) {
          const wait = this.backoff(retries, error);
          if (retries >= maxRetries || !isRetried(error, operation.retry) || this.clock.now() + wait > deadline) throw error;
          await this.clock.sleep(wait, call.signal);
        }
      }
    } finally {
      call.end();
    }
  }

  /** Opens an event stream and returns its body; `call` ends both. */
  async open(path: string, extra: Headers, call: CallSignal): Promise<ReadableStream<Uint8Array>> {
    const request = { headers: checkedHeaders(this.#headers("text/event-stream", extra)) };
    const response = await this.#fetch(new URL(this.baseUrl + path), request, call);
    const headers = this.#received(response);
    if (response.ok && headers["content-type"]?.startsWith("text/event-stream") && response.body) return response.body;
    throw await this.#errorOf(response, headers, call);
  }

  /** Milliseconds before the next attempt: `retry-after`, or else a random part of a time that doubles (full jitter). */
  backoff(retries: number, error: unknown): number {
    const given = (error as PostriderError | null)?.headers?.["retry-after"];
    const wait = /^\d+$/.test(given ?? "") ? Number(given) * 1000 : Date.parse(given ?? "") - this.clock.now();
    return Number.isNaN(wait) ? this.clock.random() * Math.min(8000, 500 * 2 ** retries) : Math.max(wait, 0);
  }

  /** The caller's headers with the SDK's own, which replace them; a `User-Agent` is appended. */
  #headers(accept: string, given: Headers = {}): Headers {
    const headers = Object.fromEntries(Object.entries(given).map(([name, value]) => [name.toLowerCase(), value]));
    const agent = headers["user-agent"] === undefined ? this.#userAgent : `${this.#userAgent} ${headers["user-agent"]}`;
    return { ...headers, accept, "service-version": SERVICE_VERSION, "user-agent": agent, authorization: `Bearer ${this.#key}` };
  }

  async #attempt<T>(operation: Operation, url: URL, request: RequestInit, call: CallSignal): Promise<Answer<T>> {
    const response = await this.#fetch(url, request, call);
    const headers = this.#received(response);
    const mediaType = headers["content-type"]?.split(";")[0]?.trim().toLowerCase();
    const isHeld = response.status === 202 && mediaType === "application/json";
    if (!response.ok || (mediaType !== operation.mediaType && !isHeld)) throw await this.#errorOf(response, headers, call);
    const { bytes, isCut } = await this.#read(response, headers, ANSWER_BYTES_MAX, call);
    if (isCut) throw new UnexpectedResponseError("The answer is larger than 256 MiB: ask for less", response.status, headers);
    const isText = mediaType === "application/json" || mediaType.startsWith("text/");
    const text = isText ? new TextDecoder().decode(bytes) : "";
    const held = response.status === 202 ? approvalRequired(parseObject(this.#redacted(text))) : undefined;
    if (held) throw apiError(202, headers, held);
    const data = mediaType === "application/json" ? parseObject(text) : isText ? text : bytes;
    if (data === undefined) throw this.#unexpected(response, headers, text);
    const warnings = mediaType === "application/json" ? (data as { warnings?: unknown }).warnings : undefined;
    const answer = { data: data as T, headers, requestId: headers["x-request-id"] ?? "", warnings: Array.isArray(warnings) ? warnings : [] };
    for (const warning of answer.warnings) this.#warn(warning, operation.name);
    return answer;
  }

  #warn(warning: string, method: string): void {
    try {
      this.#options.onWarning?.(warning, method);
    } catch {
      // The call has succeeded: a fault of the callback must not look like its failure.
    }
  }

  async #fetch(url: URL, request: RequestInit, call: CallSignal): Promise<Response> {
    const fetch = this.#options.fetch ?? globalThis.fetch;
    try {
      return await call.until(() => fetch(url.href, { ...request, redirect: "manual", signal: call.signal }));
    } catch (error) {
      throw call.signal.aborted ? call.signal.reason : connectionError(error, url.host, (text) => this.#redacted(text));
    }
  }

  #received(response: Response): Headers {
    const headers: Headers = {};
    response.headers.forEach((value, name) => (headers[name] = this.#redacted(value)));
    const [limit, remaining, reset] = ["limit", "remaining", "reset"].map((name) => Number(headers[`ratelimit-${name}`])) as [number, number, number];
    const rateLimit = Number.isNaN(limit) ? null : { limit, remaining, reset };
    this.lastResponse = { status: response.status, requestId: headers["x-request-id"] ?? "", rateLimit, headers };
    return headers;
  }

  /** Reads at most `limit` bytes. If there are more, the connection is closed. */
  async #read(response: Response, headers: Headers, limit: number, call: CallSignal): Promise<{ bytes: Uint8Array; isCut: boolean }> {
    if (!response.body) return { bytes: new Uint8Array(), isCut: false };
    const reader = response.body.getReader();
    const chunks: Uint8Array[] = [];
    let length = 0;
    try {
      while (length <= limit) {
        const { value } = await call.until(() => reader.read());
        if (!value) break;
        chunks.push(value);
        length += value.length;
      }
    } catch {
      if (call.signal.aborted) throw call.signal.reason;
      const text = `The connection was lost in the middle of the answer (status ${response.status}): try again, or check the proxy in front of the API`;
      throw new UnexpectedResponseError(text, response.status, headers, "", true);
    } finally {
      reader.cancel().catch(() => {});
    }
    const bytes = chunks.length === 1 ? chunks[0] : new Uint8Array(await new Blob(chunks as BlobPart[]).arrayBuffer());
    return { bytes: bytes as Uint8Array, isCut: length > limit };
  }

  async #errorOf(response: Response, headers: Headers, call: CallSignal): Promise<PostriderError> {
    const { bytes, isCut } = await this.#read(response, headers, ERROR_BYTES_MAX, call);
    const text = this.#redacted(new TextDecoder().decode(bytes));
    const error = isCut || response.status < 400 ? undefined : apiError(response.status, headers, parseObject(text));
    if (error instanceof SendUnconfirmedError) return error.asking((emailId, timeout) => this.#resolve(emailId, timeout));
    return error ?? this.#unexpected(response, headers, text);
  }

  #unexpected({ status }: Response, headers: Headers, text: string): UnexpectedResponseError {
    const kind = text === "" ? "is empty" : `is not the API's (${headers["content-type"] ?? "without a content type"})`;
    let message = `The answer with status ${status} ${kind}: check the base URL ${this.baseUrl} and the proxy in front of it`;
    if (status >= 300 && status < 400) {
      message = `The server redirects to ${headers.location ?? "another address"}. This is not followed, because the API key would be sent there: set the base URL to the API's address`;
    } else if (status === 413) {
      message = "The request is too large for a proxy in front of the API: raise the proxy's limit for request bodies, or send smaller attachments";
    }
    return new UnexpectedResponseError(message, status, headers, text);
  }

  #redacted(text: string): string {
    return this.#key.length < 8 ? text : text.replaceAll(this.#key, "[API key]");
  }

  async #resolve(emailId: string, timeout: number): Promise<EmailDetail> {
    const deadline = this.clock.now() + checkedTimeout(timeout);
    for (let pause = 500; ; pause = Math.min(pause * 2, 8000)) {
      const left = Math.max(deadline - this.clock.now(), 1);
      const isLast = this.clock.now() + pause > deadline;
      try {
        const { data } = await this.call<{ email: EmailDetail }>(GET_EMAIL, [emailId], {}, { timeout: left });
        if (data.email.status !== "failed" || isLast) return data.email;
      } catch (error) {
        if (!(error instanceof NotFoundError) || isLast) throw error;
      }
      await this.clock.sleep(pause);
    }
  }
}

/** Whether a failed attempt is repeated. `isSafe`: this does no harm even if the first one was carried out. */
export function isRetried(error: unknown, isSafe: boolean): boolean {
  if (error instanceof ConnectionError) return error.reason !== "tls" && (isSafe || !error.sent);
  if (error instanceof UnexpectedResponseError) return (isSafe && error.endedEarly) || isRetriedAnswer(error.status, "", isSafe);
  return error instanceof ApiError && isRetriedAnswer(error.status, error.code, isSafe);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
