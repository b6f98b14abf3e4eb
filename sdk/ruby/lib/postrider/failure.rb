# frozen_string_literal: true

require "json"
require_relative "errors"

module Postrider
  # Makes errors of answers, and says which are worth another attempt.
  module Failure
    TRANSIENT = [408, 500, 502, 503].freeze

    module_function

    # The error for an answer (202) to a call that waits for an approval; nil for any other.
    def of_held(response)
      held = JSON.parse(response.body, symbolize_names: true, max_nesting: 128)
      return unless held.is_a?(Hash) && held[:status] == "approval_required"

      message = held[:message] || "A person must approve this call"
      ApprovalRequiredError.new(response, { code: held[:status], message: message, details: held })
    rescue JSON::ParserError, EncodingError
      nil
    end

    # The error for an answer that is no success.
    def of(response)
      error = error_in(response)
      return UnexpectedResponseError.of(response) if response.status < 400 || !error

      code = error[:code]
      details = error[:details].is_a?(Hash) ? error[:details] : {}
      return SuppressedRecipientError.new(response, error) if code == "validation_error" && suppression?(details)

      (ERROR_CODES[code] || (response.status >= 500 ? ServerError : ApiError)).new(response, error)
    end

    # Whether the same request may be sent again after this error.
    def retryable?(failure, operation)
      case failure
      when ConnectionError then !failure.permanent? && (failure.unsent? || operation.retry)
      when UnexpectedResponseError then operation.retry && (failure.truncated? || TRANSIENT.include?(failure.status))
      when ApiError
        case failure.code
        when "plan_limit" then false
        when "rate_limit_exceeded", "service_unavailable" then true
        when "idempotency_in_progress" then operation.retry
        else operation.retry && TRANSIENT.include?(failure.status)
        end
      end
    end

    def error_in(response)
      answer = JSON.parse(response.body, symbolize_names: true, max_nesting: 128)
      error = answer[:error] if answer.is_a?(Hash)
      error if error.is_a?(Hash) && error[:message].is_a?(String)
    rescue JSON::ParserError, EncodingError
      nil
    end

    def suppression?(details)
      details.key?(:suppressed) || details.key?(:category_unsubscribed)
    end
  end
end
