# frozen_string_literal: true

require_relative "response"

module Postrider
  # The base of all errors of the SDK. Their messages say what to do and never contain the API key.
  class Error < StandardError
  end

  # The API key or the base URL is missing or malformed.
  class ConfigurationError < Error
  end

  # The caller cancelled the call.
  class CancelledError < Error
  end

  # The call's time is over. The server may have carried it out.
  class TimeoutError < Error
    def self.after(seconds, answering)
      new(format("%s within %.3g s. Raise `timeout`, or check the server and the network between.",
                 answering ? "The answer was not complete" : "The server did not answer", seconds))
    end
  end

  # The signature of a webhook is missing or wrong: answer 401 and do not use the payload.
  class SignatureError < Error
  end

  # The time of a signed webhook is outside of the tolerance.
  class TimestampError < SignatureError
  end

  # No answer came.
  class ConnectionError < Error
    # One of `dns`, `refused`, `reset`, `tls`, `other`.
    attr_reader :reason

    def initialize(message, reason, unsent: false, permanent: false)
      super(message)
      @reason = reason
      @unsent = unsent
      @permanent = permanent
    end

    # Whether the request certainly did not reach the server.
    def unsent?
      @unsent
    end

    # Whether trying again cannot help.
    def permanent?
      @permanent
    end
  end

  # An answer that is not the API's, for example a proxy's page.
  class UnexpectedResponseError < Error
    attr_reader :response, :status, :content_type
    # The beginning of the answer, at most 200 characters.
    attr_reader :excerpt

    def initialize(message, response, excerpt: "", truncated: false)
      super(message)
      @response = response
      @status = response.status
      @content_type = response.content_type
      @excerpt = excerpt
      @truncated = truncated
    end

    # Whether the connection was lost within the answer.
    def truncated?
      @truncated
    end

    def self.truncated(head, reason)
      new("The answer (status #{head.status}) ended too early: #{reason}.", bare(head), truncated: true)
    end

    def self.too_large(head, limit)
      new("The answer is larger than #{limit} bytes and was not read.", bare(head))
    end

    # An answer that has no error of the API in it, and no result either.
    def self.of(response)
      new(message_of(response, "status #{response.status}", response.header("content-type") || "no content type"),
          response, excerpt: excerpt(response.body))
    end

    def self.message_of(response, status, type)
      case response.status
      when 300..399
        target = response.header("location")
        "The server redirects (#{status}) to #{target ? excerpt(target) : 'nowhere'}. Redirects are not followed: " \
          "set the base URL to the final address."
      when 413
        "A proxy before the server refused the size of the request (status 413): raise its limit, or send less."
      when 500.. then "A proxy answered (#{status}, #{type}), not the API: check that the server runs."
      when 400.. then "The answer (#{status}, #{type}) is not the API's: check the base URL."
      else
        return "The answer (#{status}) is empty: check the base URL and the proxies before it." if response.body.empty?

        "The answer (#{status}, #{type}) is not the API's JSON: check the base URL."
      end
    end

    # Without header fields that could repeat the request's.
    def self.bare(head)
      Response.new(head.status, head.headers.slice("content-type", "retry-after"))
    end

    def self.excerpt(text)
      text = text.byteslice(0, 2000).force_encoding(Encoding::UTF_8).scrub("?")
      text.gsub(/(?:\p{C}|\p{Space})+/, " ").strip[0, 200]
    end
    private_class_method :message_of, :bare, :excerpt
  end

  # An error that the API answered.
  class ApiError < Error
    # `code` is the API's, for example `validation_error`.
    attr_reader :status, :code, :request_id, :doc_url, :headers, :details, :response

    # error: the object `error` of the answer.
    def initialize(response, error)
      @response = response
      @error = error
      @status = response.status
      @headers = response.headers
      @code = string(error[:code]) || ""
      @request_id = response.request_id || string(error[:request_id])
      @doc_url = string(error[:doc_url])
      @details = error[:details].is_a?(Hash) ? error[:details] : {}
      where = @code.empty? ? "status #{@status}" : @code
      super("#{string(error[:message]) || 'The API refused the call.'} (#{where})")
    end

    private

    def text(name)
      string(@details[name]) || string(@error[name])
    end

    def string(value)
      value if value.is_a?(String)
    end
  end

  # The request is malformed.
  class ValidationError < ApiError
    # What is wrong, by field.
    def fields
      details[:fields].is_a?(Hash) ? details[:fields] : {}
    end
  end

  # A recipient is suppressed or has opted out of the category. The email was not sent.
  class SuppressedRecipientError < ValidationError
    # Addresses that are suppressed or opted out.
    def suppressed
      Array(details[:suppressed] || details[:category_unsubscribed]).grep(String)
    end

    # The category that the recipients opted out of; nil if they are suppressed for all mail.
    def category
      text(:category)
    end

    # The email, stored as failed.
    def email_id
      text(:email_id)
    end
  end

  # The API key is unknown, revoked or expired.
  class AuthenticationError < ApiError
    def reason
      text(:reason)
    end
  end

  # The API key, the domain or the account must not do this.
  class PermissionError < ApiError
  end

  # No such object in this account.
  class NotFoundError < ApiError
  end

  # Another object or call is in the way.
  class ConflictError < ApiError
  end

  # The idempotency key was used with another request. Use a new key for a new request.
  class IdempotencyConflictError < ConflictError
  end

  # A limit of the account's plan is reached. Retrying does not help before `resets_at`.
  class PlanLimitError < ApiError
    # The limit's name, for example `daily`.
    def limit
      text(:limit)
    end

    def used
      details[:used]
    end

    def cap
      details[:cap]
    end

    def resets_at
      text(:resets_at)
    end

    def upgrade_url
      text(:upgrade_url)
    end
  end

  # The account makes too many calls at once, and the retries did not help.
  class RateLimitError < ApiError
    def limit
      response.rate_limit[:limit]
    end

    def remaining
      response.rate_limit[:remaining]
    end

    # Seconds until all calls of the limit are allowed again.
    def reset
      response.rate_limit[:reset]
    end

    # Seconds to wait before the next call.
    def retry_after
      response.retry_after
    end
  end

  # Another server refused, for example the DNS provider.
  class UpstreamError < ApiError
  end

  # The server failed. Calls that may be repeated were repeated already.
  class ServerError < ApiError
  end

  # The server could not tell whether it took the email. Sending it again could deliver it twice: call `resolve`.
  class SendUnconfirmedError < ApiError
    def email_id
      text(:email_id)
    end

    # :nodoc: The client gives the function that `resolve` calls.
    def resolve_by(&lookup)
      @lookup = lookup
      self
    end

    # Asks for the email until the server knows what became of it, and returns the email. It never sends again. After
    # `timeout` seconds it raises TimeoutError.
    def resolve(timeout: 60)
      raise Error, "Look for the email with `client.emails.list`: its id is unknown." if email_id.nil? || @lookup.nil?

      @lookup.call(email_id, timeout)
    end

    # The function refers to the client.
    def inspect
      "#<#{self.class}: #{message}>"
    end
  end
end
