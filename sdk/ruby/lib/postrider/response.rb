# frozen_string_literal: true

require "time"

module Postrider
  # An answer of the server. The names of `headers` are in lower case.
  class Response
    attr_reader :status, :headers, :body

    def initialize(status, headers = {}, body = "")
      @status = status
      @headers = headers
      @body = body
    end

    def header(name)
      @headers[name.downcase]
    end

    def content_type
      header("content-type") || ""
    end

    def request_id
      header("x-request-id")
    end

    # The account's rate limit after the call: calls allowed, calls left, and seconds until all are allowed again.
    def rate_limit
      { limit: integer("ratelimit-limit"), remaining: integer("ratelimit-remaining"), reset: integer("ratelimit-reset") }
    end

    # A number in a header; nil if there is none.
    def integer(name)
      Integer(header(name) || "", 10, exception: false)
    end

    # The wait that the server asks for, in seconds; nil if it asks for none.
    def retry_after(now = Time.now)
      value = header("retry-after")
      return if value.nil?
      return value.to_f if value.match?(/\A\s*\d+(\.\d+)?\s*\z/)

      # The server's own date makes the wait independent of the local clock.
      wait = Time.httpdate(value) - (date || now)
      [0.0, wait].max
    rescue ArgumentError
      nil
    end

    def inspect
      "#<#{self.class} #{status}>"
    end

    private

    def date
      Time.httpdate(header("date") || "")
    rescue ArgumentError
      nil
    end
  end
end
