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
      messages(:fields)
    end
  end

  # Recipients are suppressed, or opted out of the category. The email was not sent.
  class SuppressedRecipientError < ValidationError
    # Addresses of these recipients.
    def suppressed
      addresses(:suppressed, :category_unsubscribed)
    end

    # The category that they opted out of.
    def category
      text(:category)
    end

    # The stored email, which failed.
    def email_id
      text(:email_id)
    end
  end

  # The API key is missing, unknown, revoked or expired.
  class AuthenticationError < ApiError
    # Why, for example `expired`.
    def reason
      text(:reason)
    end
  end

  # The API key, the domain or the account may not do this.
  class PermissionError < ApiError
  end

  # The policy of the client asks for an approval (202): nothing was done yet. The call is carried out, once, when a person approves it; `approvals.get` says what became of it.
  class ApprovalRequiredError < ApiError
    # The approval, `apr_…`.
    def approval_id
      text(:approval_id)
    end

    # The page on which a person decides.
    def url
      text(:url)
    end

    # End of the time for a decision, in ISO 8601.
    def expires_at
      text(:expires_at)
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
      text(:limit)
    end

    # How much of it is used.
    def used
      integer(:used)
    end

    # How much the plan has.
    def cap
      integer(:cap)
    end

    # When it is reset, in ISO 8601.
    def resets_at
      text(:resets_at)
    end

    # Where the plan can be changed.
    def upgrade_url
      text(:upgrade_url)
    end
  end

  # The account makes too many calls at once, and retries did not help.
  class RateLimitError < ApiError
    # Calls that are allowed.
    def limit
      header("ratelimit-limit")
    end

    # Calls that are left.
    def remaining
      header("ratelimit-remaining")
    end

    # Seconds until all calls are allowed again.
    def reset
      header("ratelimit-reset")
    end

    # Time to wait before the next call.
    def retry_after
      wait("retry-after")
    end
  end

  # A service behind the server refused or failed, for example a DNS provider.
  class UpstreamError < ApiError
  end

  # The server has a fault, or is overloaded. Retries did not help.
  class ServerError < ApiError
  end

  # The class of each error code.
  ERROR_CODES = {
    "account_suspended" => PermissionError,
    "approval_required" => ApprovalRequiredError,
    "bad_request" => ValidationError,
    "conflict" => ConflictError,
    "domain_claimed" => ConflictError,
    "domain_not_verified" => PermissionError,
    "forbidden" => PermissionError,
    "gone" => ApiError,
    "headers_too_large" => ValidationError,
    "idempotency_conflict" => IdempotencyConflictError,
    "idempotency_in_progress" => ConflictError,
    "internal_error" => ServerError,
    "invalid_cursor" => ValidationError,
    "invalid_idempotency_key" => ValidationError,
    "invalid_json" => ValidationError,
    "ip_not_allowed" => PermissionError,
    "mail_server_error" => ServerError,
    "method_not_allowed" => ValidationError,
    "not_found" => NotFoundError,
    "payload_too_large" => ValidationError,
    "plan_limit" => PlanLimitError,
    "policy_violation" => PermissionError,
    "production_access_required" => PermissionError,
    "rate_limit_exceeded" => RateLimitError,
    "reauthentication_required" => AuthenticationError,
    "request_timeout" => ServerError,
    "sandbox_restricted" => PermissionError,
    "send_unconfirmed" => SendUnconfirmedError,
    "service_unavailable" => ServerError,
    "unauthorized" => AuthenticationError,
    "unsupported_media_type" => ValidationError,
    "upstream_error" => UpstreamError,
    "validation_error" => ValidationError
  }.freeze
end
