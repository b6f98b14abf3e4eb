import { ApiError, type Headers, ServerError, SuppressedRecipientError } from "./errors.js";
import { ERROR_CODES } from "./generated/error_codes.js";

/** The body of a request that waits for an approval (202), in the form of an error; undefined if `body` is another one. */
export function approvalRequired(body: Record<string, any> | undefined): Record<string, any> | undefined {
  if (body?.status !== "approval_required") return undefined;
  return { error: { code: body.status, message: body.message ?? "A person must approve this call", details: body } };
}

/** The API's error in the class of its code; undefined if `body` is not the API's. */
export function apiError(status: number, headers: Headers, body: Record<string, any> | undefined): ApiError | undefined {
  const { message, code = "", details = {}, request_id, doc_url, upgrade_url } = body?.error ?? {};
  if (typeof message !== "string" || typeof code !== "string" || typeof details !== "object" || details === null) return undefined;
  const isSuppressed = code === "validation_error" && (details.suppressed || details.category_unsubscribed);
  const unlisted = status >= 500 ? ServerError : ApiError;
  const errorClass = isSuppressed ? SuppressedRecipientError : Object.hasOwn(ERROR_CODES, code) ? ERROR_CODES[code] : undefined;
  const all = upgrade_url === undefined ? details : { upgrade_url, ...details };
  const requestId = request_id ?? headers["x-request-id"] ?? "";
  return new (errorClass ?? unlisted)(message, { status, code, requestId, headers, docUrl: doc_url ?? "", details: all });
}
