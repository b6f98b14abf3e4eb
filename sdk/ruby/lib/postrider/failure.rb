# frozen_string_literal: true

require "json"
require_relative "errors"

module Postrider
  # Makes errors of answers, and says which are worth another attempt.
  module Failure
    module_function

    # The error for an answer (202) to a call that waits for an approval; nil for any other.
    def of_held(response)
      ErrorCodes.held(response, parsed(response))
    end

    # The error for an answer that is no success.
    def of(response)
      answer = parsed(response)
      error = answer[:error] if answer.is_a?(Hash)
      is_error = response.status >= 400 && error.is_a?(Hash) && error[:message].is_a?(String)
      is_error ? ErrorCodes.error(response, error) : UnexpectedResponseError.of(response)
    end

    # Whether the same request may be sent again after this error.
    def retryable?(failure, operation)
      case failure
      when ConnectionError then !failure.permanent? && (failure.unsent? || operation.retry)
      when UnexpectedResponseError
        (failure.truncated? && operation.retry) || ErrorCodes.retried?(failure.status, nil, operation.retry)
      when ApiError then ErrorCodes.retried?(failure.status, failure.code, operation.retry)
      end
    end

    def parsed(response)
      JSON.parse(response.body, symbolize_names: true, max_nesting: 128)
    rescue JSON::ParserError, EncodingError
      nil
    end
  end
end
