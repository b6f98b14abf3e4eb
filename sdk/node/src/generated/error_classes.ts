// Generated from sdk/operations.json by sdk/generate; do not edit.

import { ApiError, ConnectionError, type Headers, PostriderError, SendUnconfirmedError, UnexpectedResponseError } from "../error_bases.js";

const headerNumber = (headers: Headers, name: string) => (headers[name] === undefined || Number.isNaN(Number(headers[name])) ? undefined : Number(headers[name]));

/** The API key, the base URL or another argument cannot be used. Nothing was sent. */
export class ConfigurationError extends PostriderError {}

/** The deadline of the call passed. The server may have carried it out. */
export class TimeoutError extends PostriderError {}

/** The caller cancelled the call. The server may have carried it out. */
export class CancelledError extends PostriderError {}

/** The signature of a webhook is missing or wrong: answer 401 and do not use the payload. */
export class SignatureError extends PostriderError {}

/** The time of a signed webhook is outside of the tolerance. */
export class TimestampError extends SignatureError {}

/** The request is not valid. */
export class ValidationError extends ApiError {
  /** Messages by the name of the field. */
  readonly fields: Record<string, string> = this.details.fields ?? {};
}

/** Recipients are suppressed, or opted out of the category. The email was not sent. */
export class SuppressedRecipientError extends ValidationError {
  /** Addresses of these recipients. */
  readonly suppressed: string[] = this.details.suppressed ?? this.details.category_unsubscribed ?? [];
  /** The category that they opted out of. */
  readonly category: string | undefined = this.details.category;
  /** The stored email, which failed. */
  readonly emailId: string | undefined = this.details.email_id;
}

/** The API key is missing, unknown, revoked or expired. */
export class AuthenticationError extends ApiError {
  /** Why, for example `expired`. */
  readonly reason: string | undefined = this.details.reason;
}

/** The API key, the domain or the account may not do this. */
export class PermissionError extends ApiError {}

/** The policy of the client asks for an approval (202): nothing was done yet. The call is carried out, once, when a person approves it; `approvals.get` says what became of it. */
export class ApprovalRequiredError extends ApiError {
  /** The approval, `apr_…`. */
  readonly approvalId: string | undefined = this.details.approval_id;
  /** The page on which a person decides. */
  readonly url: string | undefined = this.details.url;
  /** End of the time for a decision, in ISO 8601. */
  readonly expiresAt: string | undefined = this.details.expires_at;
}

/** There is no such object in this account. */
export class NotFoundError extends ApiError {}

/** The object is in another state, was changed meanwhile, or exists already. */
export class ConflictError extends ApiError {}

/** The idempotency key was used with another request. A new request needs a new key. */
export class IdempotencyConflictError extends ConflictError {}

/** A limit of the account's plan is reached. Retries do not help before it is reset. */
export class PlanLimitError extends ApiError {
  /** The limit's name, for example `daily`. */
  readonly limit: string | undefined = this.details.limit;
  /** How much of it is used. */
  readonly used: number | undefined = this.details.used;
  /** How much the plan has. */
  readonly cap: number | undefined = this.details.cap;
  /** When it is reset, in ISO 8601. */
  readonly resetsAt: string | undefined = this.details.resets_at;
  /** Where the plan can be changed. */
  readonly upgradeUrl: string | undefined = this.details.upgrade_url;
}

/** The account makes too many calls at once, and retries did not help. */
export class RateLimitError extends ApiError {
  /** Calls that are allowed. */
  readonly limit = headerNumber(this.headers, "ratelimit-limit");
  /** Calls that are left. */
  readonly remaining = headerNumber(this.headers, "ratelimit-remaining");
  /** Seconds until all calls are allowed again. */
  readonly reset = headerNumber(this.headers, "ratelimit-reset");
  /** Time to wait before the next call. */
  readonly retryAfter = headerNumber(this.headers, "retry-after");
}

/** A service behind the server refused or failed, for example a DNS provider. */
export class UpstreamError extends ApiError {}

/** The server has a fault, or is overloaded. Retries did not help. */
export class ServerError extends ApiError {}

// Not the names of the classes themselves, because minifiers rename classes.
const CLASSES = {
  PostriderError, ApiError, ConnectionError, UnexpectedResponseError, SendUnconfirmedError,
  ConfigurationError,
  TimeoutError,
  CancelledError,
  SignatureError,
  TimestampError,
  ValidationError,
  SuppressedRecipientError,
  AuthenticationError,
  PermissionError,
  ApprovalRequiredError,
  NotFoundError,
  ConflictError,
  IdempotencyConflictError,
  PlanLimitError,
  RateLimitError,
  UpstreamError,
  ServerError,
};
for (const [name, errorClass] of Object.entries(CLASSES)) {
  Object.defineProperty(errorClass.prototype, "name", { value: name, configurable: true, writable: true });
}
