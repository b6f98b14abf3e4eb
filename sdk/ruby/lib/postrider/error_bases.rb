# frozen_string_literal: true

require_relative "response"

module Postrider
  # The base of all errors of the SDK. Their messages say what to do and never contain the API key.
  class Error < StandardError
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

    def string(value)
      value if value.is_a?(String)
    end
  end

  # The server could not tell whether it took the email. Sending it again could deliver it twice: call `resolve`.
  class SendUnconfirmedError < ApiError
    def email_id
      string(details[:email_id]) || string(@error[:email_id])
    end

    # :nodoc: The client gives the function that `resolve` calls.
    def resolve_by(&lookup)
      @lookup = lookup
      self
    end

    # Asks for the email until it is no longer failed, for at most `timeout` seconds, and returns it as it is then. It never
    # sends again. Raises NotFoundError if the server did not take the email.
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
