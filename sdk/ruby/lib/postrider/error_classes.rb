# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "error_bases"

module Postrider
  # The API key, the base URL or another argument cannot be used. Nothing was sent.
  class ConfigurationError < Error
  end

  # The deadline of the call passed. The server may have carried it out.
  class TimeoutError < Error
  end

  # The caller cancelled the call. The server may have carried it out.
  class CancelledError < Error
  end

  # The signature of a webhook is missing or wrong: answer 401 and do not use the payload.
  class SignatureError < Error
  end

  # The time of a signed webhook is outside of the tolerance.
  class TimestampError < SignatureError
  end

  # The request is not valid.
  class ValidationError < ApiError
    # Messages by the name of the field.
    def fields
      details[:fields].is_a?(Hash) ? details[:fields] : {}
    end
  end

  # Recipients are suppressed, or opted out of the category. The email was not sent.
  class SuppressedRecipientError < ValidationError
    # Addresses of these recipients.
    def suppressed
      Array(details[:suppressed] || details[:category_unsubscribed]).grep(String)
    end

    # The category that they opted out of.
    def category
      string(details[:category]) || string(@error[:category])
    end

    # The stored email, which failed.
    def email_id
      string(details[:email_id]) || string(@error[:email_id])
    end
  end

  # The API key is missing, unknown, revoked or expired.
  class AuthenticationError < ApiError
    # Why, for example `expired`.
    def reason
      string(details[:reason]) || string(@error[:reason])
    end
  end

  # The API key, the domain or the account may not do this.
  class PermissionError < ApiError
  end

  # The policy of the client asks for an approval (202): nothing was done yet. The call is carried out, once, when a person approves it; `approvals.get` says what became of it.
  class ApprovalRequiredError < ApiError
    # The approval, `apr_…`.
    def approval_id
      string(details[:approval_id]) || string(@error[:approval_id])
    end

    # The page on which a person decides.
    def url
      string(details[:url]) || string(@error[:url])
    end

    # End of the time for a decision, in ISO 8601.
    def expires_at
      string(details[:expires_at]) || string(@error[:expires_at])
    end
  end

  # There is no such object in this account.
  class NotFoundError < ApiError
  end

  # The object is in another state, was changed meanwhile, or exists already.
  class ConflictError < ApiError
  end

  # The idempotency key was used with another request. A new request needs a new key.
  class IdempotencyConflictError < ConflictError
  end

  # A limit of the account's plan is reached. Retries do not help before it is reset.
  class PlanLimitError < ApiError
    # The limit's name, for example `daily`.
    def limit
      string(details[:limit]) || string(@error[:limit])
    end

    # How much of it is used.
    def used
      details[:used]
    end

    # How much the plan has.
    def cap
      details[:cap]
    end

    # When it is reset, in ISO 8601.
    def resets_at
      string(details[:resets_at]) || string(@error[:resets_at])
    end

    # Where the plan can be changed.
    def upgrade_url
      string(details[:upgrade_url]) || string(@error[:upgrade_url])
    end
  end

  # The account makes too many calls at once, and retries did not help.
  class RateLimitError < ApiError
    # Calls that are allowed.
    def limit
      response.integer("ratelimit-limit")
    end

    # Calls that are left.
    def remaining
      response.integer("ratelimit-remaining")
    end

    # Seconds until all calls are allowed again.
    def reset
      response.integer("ratelimit-reset")
    end

    # Time to wait before the next call.
    def retry_after
      response.retry_after
    end
  end

  # A service behind the server refused or failed, for example a DNS provider.
  class UpstreamError < ApiError
  end

  # The server has a fault, or is overloaded. Retries did not help.
  class ServerError < ApiError
  end

  # What follows from the codes of the API's errors.
  module ErrorCodes
    # The class of each code, and whether a call is repeated after it: `safe` if it does no harm that it was carried out.
    CODES = {
      "account_suspended" => [PermissionError, :never],
      "approval_required" => [ApprovalRequiredError, :never],
      "bad_request" => [ValidationError, :never],
      "conflict" => [ConflictError, :never],
      "domain_claimed" => [ConflictError, :never],
      "domain_not_verified" => [PermissionError, :never],
      "forbidden" => [PermissionError, :never],
      "gone" => [ApiError, :never],
      "headers_too_large" => [ValidationError, :never],
      "idempotency_conflict" => [IdempotencyConflictError, :never],
      "idempotency_in_progress" => [ConflictError, :safe],
      "internal_error" => [ServerError, :safe],
      "invalid_cursor" => [ValidationError, :never],
      "invalid_idempotency_key" => [ValidationError, :never],
      "invalid_json" => [ValidationError, :never],
      "ip_not_allowed" => [PermissionError, :never],
      "mail_server_error" => [ServerError, :safe],
      "method_not_allowed" => [ValidationError, :never],
      "not_found" => [NotFoundError, :never],
      "payload_too_large" => [ValidationError, :never],
      "plan_limit" => [PlanLimitError, :never],
      "policy_violation" => [PermissionError, :never],
      "production_access_required" => [PermissionError, :never],
      "rate_limit_exceeded" => [RateLimitError, :always],
      "reauthentication_required" => [AuthenticationError, :never],
      "request_timeout" => [ServerError, :safe],
      "sandbox_restricted" => [PermissionError, :never],
      "send_unconfirmed" => [SendUnconfirmedError, :never],
      "service_unavailable" => [ServerError, :always],
      "unauthorized" => [AuthenticationError, :never],
      "unsupported_media_type" => [ValidationError, :never],
      "upstream_error" => [UpstreamError, :never],
      "validation_error" => [ValidationError, :never]
    }.freeze

    module_function

    # error: the object `error` of the answer
    def error(response, error)
      code = error[:code]
      details = error[:details].is_a?(Hash) ? error[:details] : {}
      if code == "validation_error" && (details.key?(:suppressed) || details.key?(:category_unsubscribed))
        return SuppressedRecipientError.new(response, error)
      end

      (CODES.dig(code, 0) || (response.status >= 500 ? ServerError : ApiError)).new(response, error)
    end

    # The error for the body of an answer (202) to a call that waits for an approval; nil for any other.
    def held(response, body)
      return unless body.is_a?(Hash) && body[:status] == "approval_required"

      message = body[:message] || "A person must approve this call"
      error(response, { code: body[:status], message: message, details: body })
    end

    # Whether a call is repeated after an answer. is_safe: it does no harm that the first one was carried out.
    def retried?(status, code, is_safe)
      decision = CODES.dig(code, 1) || ([408,500,502,503].include?(status) ? :safe : :never)
      decision == :always || (is_safe && decision == :safe)
    end
  end
end
