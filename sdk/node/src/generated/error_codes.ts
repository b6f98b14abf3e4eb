// Generated from sdk/operations.json by sdk/generate; do not edit.

import * as errors from "../errors.js";

/** Classes of the API's errors by code. */
export const ERROR_CODES: Readonly<Record<string, typeof errors.ApiError>> = {
  account_suspended: errors.PermissionError,
  bad_request: errors.ValidationError,
  conflict: errors.ConflictError,
  domain_claimed: errors.ConflictError,
  domain_not_verified: errors.PermissionError,
  forbidden: errors.PermissionError,
  gone: errors.ApiError,
  headers_too_large: errors.ValidationError,
  idempotency_conflict: errors.IdempotencyConflictError,
  idempotency_in_progress: errors.ConflictError,
  internal_error: errors.ServerError,
  invalid_cursor: errors.ValidationError,
  invalid_idempotency_key: errors.ValidationError,
  invalid_json: errors.ValidationError,
  ip_not_allowed: errors.PermissionError,
  mail_server_error: errors.ServerError,
  method_not_allowed: errors.ValidationError,
  not_found: errors.NotFoundError,
  payload_too_large: errors.ValidationError,
  plan_limit: errors.PlanLimitError,
  policy_violation: errors.PermissionError,
  production_access_required: errors.PermissionError,
  rate_limit_exceeded: errors.RateLimitError,
  reauthentication_required: errors.AuthenticationError,
  request_timeout: errors.ServerError,
  sandbox_restricted: errors.PermissionError,
  send_unconfirmed: errors.SendUnconfirmedError,
  service_unavailable: errors.ServerError,
  unauthorized: errors.AuthenticationError,
  unsupported_media_type: errors.ValidationError,
  upstream_error: errors.UpstreamError,
  validation_error: errors.ValidationError,
};
