/**
 * The errors of the SDK; sdk/README.md has the table of classes and codes. Each message says what to do. No error contains
 * the API key.
 */

import { ERROR_CLASSES } from "./generated/error_classes.js";

export type Headers = Record<string, string>;

/** Base class of all errors. */
export class PostriderError extends Error {
  /** Set if the server answered. */
  declare readonly status?: number;
  declare readonly code?: string;
  declare readonly requestId?: string;
  /** Headers of the answer, with names in lower case. */
  declare readonly headers?: Headers;

  /** The error with its message, which `JSON.stringify` leaves out of other errors. */
  toJSON(): { name: string; message: string } {
    return Object.assign({ name: this.name, message: this.message }, this);
  }
}

/** An option or argument is missing or invalid; nothing was sent. */
export class ConfigurationError extends PostriderError {}

/** No answer came. */
export class ConnectionError extends PostriderError {
  readonly reason: "dns" | "refused" | "reset" | "tls" | "other";
  /** False if the request cannot have reached the server. */
  readonly sent: boolean;

  constructor(message: string, reason: ConnectionError["reason"], sent: boolean, options?: { cause?: unknown }) {
    super(message, options);
    this.reason = reason;
    this.sent = sent;
  }
}

/** The deadline of the call passed. */
export class TimeoutError extends PostriderError {}

/** The caller's `AbortSignal` cancelled the call. */
export class CancelledError extends PostriderError {}

/** An answer that is not the API's, for example the page of a proxy. */
export class UnexpectedResponseError extends PostriderError {
  override readonly status: number;
  override readonly headers: Headers;
  readonly contentType: string;
  /** The first 200 characters of the body. */
  readonly excerpt: string;
  /** True if the connection was lost in the middle of the body. */
  readonly endedEarly: boolean;

  constructor(message: string, status: number, headers: Headers, excerpt = "", endedEarly = false) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.contentType = headers["content-type"] ?? "";
    this.excerpt = excerpt.slice(0, 200);
    this.endedEarly = endedEarly;
  }
}

/** A webhook whose signature is missing or wrong. */
export class SignatureError extends PostriderError {}

/** A webhook with a valid signature whose time is outside the tolerance. */
export class TimestampError extends SignatureError {}

/** An error of the API as it was answered. */
export interface ErrorAnswer {
  status: number;
  headers: Headers;
  error: {
    message: string;
    code?: string;
    details?: Record<string, unknown>;
    upgrade_url?: string;
    request_id?: string;
    doc_url?: string;
  };
}

/** An error that the API answered. */
export class ApiError extends PostriderError {
  override readonly status: number;
  override readonly code: string;
  override readonly requestId: string;
  override readonly headers: Headers;
  /** The page that explains the code. */
  readonly docUrl: string;
  readonly details: Record<string, unknown>;

  constructor({ status, headers, error }: ErrorAnswer) {
    super(error.message);
    this.status = status;
    this.code = error.code ?? "";
    this.requestId = error.request_id ?? headers["x-request-id"] ?? "";
    this.headers = headers;
    this.docUrl = error.doc_url ?? "";
    this.details = error.details ?? {};
  }
}

/** A request that is not valid. */
export class ValidationError extends ApiError {
  /** Messages by field, for example `{from: "…"}`. */
  readonly fields = { ...(this.details.fields as Record<string, string> | undefined) };
}

/** Recipients are suppressed, or opted out of the category; the email was not sent. */
export class SuppressedRecipientError extends ValidationError {
  /** Addresses of these recipients. */
  readonly suppressed = addresses(this.details.suppressed ?? this.details.category_unsubscribed);
  /** The category that they opted out of. */
  readonly category = text(this.details.category);
  /** Id of the email that records the refusal. */
  readonly emailId = text(this.details.email_id);
}

/** The API key is missing, wrong, revoked or expired. */
export class AuthenticationError extends ApiError {
  readonly reason = text(this.details.reason);
}

/** The key or the account may not do this. */
export class PermissionError extends ApiError {}

export class NotFoundError extends ApiError {}

/** The object is in another state, or was changed meanwhile. */
export class ConflictError extends ApiError {}

/** The idempotency key was used with another request. */
export class IdempotencyConflictError extends ConflictError {}

/** A limit of the plan is reached. It is not retried. */
export class PlanLimitError extends ApiError {
  readonly upgradeUrl: string | undefined;
  /** The limit, for example `daily`. */
  readonly limit = text(this.details.limit);
  readonly used = number(this.details.used);
  readonly cap = number(this.details.cap);
  readonly resetsAt = text(this.details.resets_at);

  constructor(answer: ErrorAnswer) {
    super(answer);
    this.upgradeUrl = answer.error.upgrade_url ?? text(this.details.upgrade_url);
  }
}

/** Too many requests. Times are in seconds. */
export class RateLimitError extends ApiError {
  readonly limit = number(this.headers["ratelimit-limit"]);
  readonly remaining = number(this.headers["ratelimit-remaining"]);
  readonly reset = number(this.headers["ratelimit-reset"]);
  readonly retryAfter = number(this.headers["retry-after"]);
}

/** A service behind the server refused, for example a DNS provider. */
export class UpstreamError extends ApiError {}

/** The server has a fault, or is overloaded. */
export class ServerError extends ApiError {}

/** An email as `SendUnconfirmedError.resolve` gets it. */
export interface ResolvedEmail {
  id: string;
  status: string;
  last_event: string;
  [field: string]: unknown;
}

/** Asks for an email until it is no longer failed, or until `timeout` (milliseconds) is over. */
export type ResolveEmail = (emailId: string, timeout: number) => Promise<ResolvedEmail>;

/** The server does not know whether it took the email (504). Sending again could deliver it twice: call `resolve`. */
export class SendUnconfirmedError extends ApiError {
  readonly emailId = text(this.details.email_id) ?? "";
  readonly #resolve: ResolveEmail;

  constructor(answer: ErrorAnswer, resolve: ResolveEmail) {
    super(answer);
    this.#resolve = resolve;
  }

  /**
   * Asks for the email until it is no longer failed, for at most `timeout` milliseconds (60,000), and returns it. It
   * never sends again. Whatever `throwOnError` is, it throws: `NotFoundError` if the server did not take the email, and
   * the errors of other calls.
   */
  resolve(options: { timeout?: number } = {}): Promise<ResolvedEmail> {
    return this.#resolve(this.emailId, options.timeout ?? 60_000);
  }
}

const CLASSES = {
  ApiError, ValidationError, SuppressedRecipientError, AuthenticationError, PermissionError, NotFoundError, ConflictError,
  IdempotencyConflictError, PlanLimitError, RateLimitError, UpstreamError, ServerError,
};

/** The API's error in the class of its code. */
export function apiError(answer: ErrorAnswer, resolve: ResolveEmail): ApiError {
  const { status, error: { code = "", details = {} } } = answer;
  const listed = Object.hasOwn(ERROR_CLASSES, code) ? ERROR_CLASSES[code] : undefined;
  if (listed === "SendUnconfirmedError") return new SendUnconfirmedError(answer, resolve);
  const isSuppressed = code === "validation_error" && (details.suppressed || details.category_unsubscribed);
  const fallback = status === 401 ? "AuthenticationError" : status >= 500 ? "ServerError" : "ApiError";
  const name = isSuppressed ? "SuppressedRecipientError" : (listed ?? fallback);
  return new (CLASSES[name as keyof typeof CLASSES] ?? ApiError)(answer);
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

function number(value: unknown): number | undefined {
  const parsed = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof parsed === "number" && Number.isFinite(parsed) ? parsed : undefined;
}

function addresses(value: unknown): string[] {
  return Array.isArray(value) ? value.map((entry) => text(entry) ?? String(entry?.email)) : [];
}

// Names are set here because minifiers rename classes.
for (const [name, errorClass] of Object.entries({
  ...CLASSES, PostriderError, ConfigurationError, ConnectionError, TimeoutError, CancelledError, UnexpectedResponseError, SignatureError,
  TimestampError, SendUnconfirmedError,
})) {
  Object.defineProperty(errorClass.prototype, "name", { value: name, configurable: true, writable: true });
}
