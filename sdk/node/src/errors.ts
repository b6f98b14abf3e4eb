/**
 * The errors of the SDK; sdk/README.md has the table of classes and codes. Each message says what to do. No error contains
 * the API key.
 */

import { ERROR_CLASSES } from "./generated/error_classes.js";
import type { EmailDetail } from "./generated/types.js";

export type Headers = Record<string, string>;

/** Base class of all errors. */
export class PostriderError extends Error {
  /** Set if the server answered. */
  declare readonly status?: number;
  declare readonly code?: string;
  declare readonly requestId?: string;
  /** Headers of the answer, with names in lower case. */
  declare readonly headers?: Headers;

  /** `fields` become fields of the error. */
  constructor(message: string, fields: object = {}) {
    super(message);
    Object.assign(this, fields);
  }

  /** The error with its message, which `JSON.stringify` leaves out of other errors. */
  toJSON(): { name: string; message: string } {
    return Object.assign({ name: this.name, message: this.message }, this);
  }
}

/** An option or argument is missing or invalid; nothing was sent. */
export class ConfigurationError extends PostriderError {}

/** No answer came. */
export class ConnectionError extends PostriderError {
  declare readonly reason: "dns" | "refused" | "reset" | "tls" | "other";
  /** False if the request cannot have reached the server. */
  declare readonly sent: boolean;
}

/** The deadline of the call passed. */
export class TimeoutError extends PostriderError {}

/** The caller's `AbortSignal` cancelled the call. */
export class CancelledError extends PostriderError {}

/** An answer that is not the API's, for example the page of a proxy. */
export class UnexpectedResponseError extends PostriderError {
  declare readonly status: number;
  declare readonly headers: Headers;
  declare readonly contentType: string;
  /** The first 200 characters of the body. */
  declare readonly excerpt: string;
  /** True if the connection was lost in the middle of the body. */
  declare readonly endedEarly: boolean;

  constructor(message: string, status: number, headers: Headers, text = "", endedEarly = false) {
    super(message, { status, headers, contentType: headers["content-type"] ?? "", excerpt: text.slice(0, 200), endedEarly });
  }
}

/** A webhook whose signature is missing or wrong. */
export class SignatureError extends PostriderError {}

/** A webhook with a valid signature whose time is outside the tolerance. */
export class TimestampError extends SignatureError {}

/** An error that the API answered. */
export class ApiError extends PostriderError {
  declare readonly status: number;
  declare readonly code: string;
  declare readonly requestId: string;
  declare readonly headers: Headers;
  /** The page that explains the code. */
  declare readonly docUrl: string;
  declare readonly details: Record<string, any>;
}

/** A request that is not valid. */
export class ValidationError extends ApiError {
  /** Messages by field, for example `{from: "…"}`. */
  readonly fields: Record<string, string> = this.details.fields ?? {};
}

/** Recipients are suppressed, or opted out of the category; the email was not sent. */
export class SuppressedRecipientError extends ValidationError {
  /** Addresses of these recipients. */
  readonly suppressed: string[] = this.details.suppressed ?? this.details.category_unsubscribed;
  /** The category that they opted out of. */
  readonly category: string | undefined = this.details.category;
  /** Id of the email that records the refusal. */
  readonly emailId: string | undefined = this.details.email_id;
}

/** The API key is missing, wrong, revoked or expired. */
export class AuthenticationError extends ApiError {
  readonly reason: string | undefined = this.details.reason;
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
  readonly upgradeUrl: string | undefined = this.details.upgrade_url;
  /** The limit, for example `daily`. */
  readonly limit: string | undefined = this.details.limit;
  readonly used: number | undefined = this.details.used;
  readonly cap: number | undefined = this.details.cap;
  readonly resetsAt: string | undefined = this.details.resets_at;
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

/** The server does not know whether it took the email (504). Sending again could deliver it twice: call `resolve`. */
export class SendUnconfirmedError extends ApiError {
  readonly emailId: string = this.details.email_id ?? "";
  #find: (emailId: string, timeout: number) => Promise<EmailDetail> = () => Promise.reject(this);

  /** Sets how `resolve` asks. @internal */
  asking(find: (emailId: string, timeout: number) => Promise<EmailDetail>): this {
    this.#find = find;
    return this;
  }

  /**
   * Asks for the email until it is no longer failed, for at most `timeout` milliseconds (60,000), and returns it. It
   * never sends again. Whatever `throwOnError` is, it throws: `NotFoundError` if the server did not take the email, and
   * the errors of other calls.
   */
  resolve(options: { timeout?: number } = {}): Promise<EmailDetail> {
    return this.#find(this.emailId, options.timeout ?? 60_000);
  }
}

const CLASSES = {
  PostriderError, ConfigurationError, ConnectionError, TimeoutError, CancelledError, UnexpectedResponseError, SignatureError, TimestampError,
  ApiError, ValidationError, SuppressedRecipientError, AuthenticationError, PermissionError, NotFoundError, ConflictError,
  IdempotencyConflictError, PlanLimitError, RateLimitError, UpstreamError, SendUnconfirmedError, ServerError,
};
for (const [name, errorClass] of Object.entries(CLASSES)) {
  // Not the name of the class, because minifiers rename classes.
  Object.defineProperty(errorClass.prototype, "name", { value: name, configurable: true, writable: true });
}

/** The API's error in the class of its code; undefined if `body` is not the API's. */
export function apiError(status: number, headers: Headers, body: Record<string, any> | undefined): ApiError | undefined {
  const { message, code = "", details = {}, request_id, doc_url, upgrade_url } = body?.error ?? {};
  if (typeof message !== "string" || typeof code !== "string" || typeof details !== "object" || details === null) return undefined;
  const isSuppressed = code === "validation_error" && (details.suppressed || details.category_unsubscribed);
  const listed = isSuppressed ? "SuppressedRecipientError" : Object.hasOwn(ERROR_CLASSES, code) ? ERROR_CLASSES[code] : undefined;
  const name = listed ?? (status === 401 ? "AuthenticationError" : status >= 500 ? "ServerError" : "ApiError");
  const errorClass = CLASSES[name as keyof typeof CLASSES] as typeof ApiError;
  const all = upgrade_url === undefined ? details : { upgrade_url, ...details };
  const requestId = request_id ?? headers["x-request-id"] ?? "";
  return new errorClass(message, { status, code, requestId, headers, docUrl: doc_url ?? "", details: all });
}

function number(text: string | undefined): number | undefined {
  return text === undefined || Number.isNaN(Number(text)) ? undefined : Number(text);
}
