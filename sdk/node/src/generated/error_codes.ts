// Generated from sdk/operations.json by sdk/generate; do not edit.

import * as errors from "../errors.js";

/** The class of each code, and whether a call is repeated after it: `safe` if it does no harm that it was carried out. */
const CODES: Readonly<Record<string, readonly [typeof errors.ApiError, "always" | "safe" | "never"]>> = {
  account_suspended: [errors.PermissionError, "never"],
  approval_required: [errors.ApprovalRequiredError, "never"],
  bad_request: [errors.ValidationError, "never"],
  conflict: [errors.ConflictError, "never"],
  domain_claimed: [errors.ConflictError, "never"],
  domain_not_verified: [errors.PermissionError, "never"],
  forbidden: [errors.PermissionError, "never"],
  gone: [errors.ApiError, "never"],
  headers_too_large: [errors.ValidationError, "never"],
  idempotency_conflict: [errors.IdempotencyConflictError, "never"],
  idempotency_in_progress: [errors.ConflictError, "safe"],
  internal_error: [errors.ServerError, "safe"],
  invalid_cursor: [errors.ValidationError, "never"],
  invalid_idempotency_key: [errors.ValidationError, "never"],
  invalid_json: [errors.ValidationError, "never"],
  ip_not_allowed: [errors.PermissionError, "never"],
  mail_server_error: [errors.ServerError, "safe"],
  method_not_allowed: [errors.ValidationError, "never"],
  not_found: [errors.NotFoundError, "never"],
  payload_too_large: [errors.ValidationError, "never"],
  plan_limit: [errors.PlanLimitError, "never"],
  policy_violation: [errors.PermissionError, "never"],
  production_access_required: [errors.PermissionError, "never"],
  rate_limit_exceeded: [errors.RateLimitError, "always"],
  reauthentication_required: [errors.AuthenticationError, "never"],
  request_timeout: [errors.ServerError, "safe"],
  sandbox_restricted: [errors.PermissionError, "never"],
  send_unconfirmed: [errors.SendUnconfirmedError, "never"],
  service_unavailable: [errors.ServerError, "always"],
  unauthorized: [errors.AuthenticationError, "never"],
  unsupported_media_type: [errors.ValidationError, "never"],
  upstream_error: [errors.UpstreamError, "never"],
  validation_error: [errors.ValidationError, "never"],
};

/** The body of a request that waits for an approval (202), in the form of an error; undefined if `body` is another one. */
export function approvalRequired(body: Record<string, any> | undefined): Record<string, any> | undefined {
  if (body?.status !== "approval_required") return undefined;
  return { error: { code: body.status, message: body.message ?? "A person must approve this call", details: body } };
}

/** The API's error in the class of its code; undefined if `body` is not the API's. */
export function apiError(status: number, headers: errors.Headers, body: Record<string, any> | undefined): errors.ApiError | undefined {
  const { message, code = "", details = {}, request_id, doc_url, upgrade_url } = body?.error ?? {};
  if (typeof message !== "string" || typeof code !== "string" || typeof details !== "object" || details === null) return undefined;
  const isSpecial = code === "validation_error" && (details.suppressed || details.category_unsubscribed);
  const known = isSpecial ? errors.SuppressedRecipientError : Object.hasOwn(CODES, code) ? CODES[code]?.[0] : undefined;
  const all = upgrade_url === undefined ? details : { upgrade_url, ...details };
  const requestId = request_id ?? headers["x-request-id"] ?? "";
  const errorClass = known ?? (status >= 500 ? errors.ServerError : errors.ApiError);
  return new errorClass(message, { status, code, requestId, headers, docUrl: doc_url ?? "", details: all });
}

/** Whether a call is repeated after an answer. `isSafe`: this does no harm even if the first one was carried out. */
export function isRetriedAnswer(status: number, code: string, isSafe: boolean): boolean {
  const known = Object.hasOwn(CODES, code) ? CODES[code]?.[1] : undefined;
  const retry = known ?? ([408,500,502,503].includes(status) ? "safe" : "never");
  return retry === "always" || (isSafe && retry === "safe");
}
