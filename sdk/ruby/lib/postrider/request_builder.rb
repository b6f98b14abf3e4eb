# frozen_string_literal: true

require "date"
require "json"
require "securerandom"
require "time"
require "uri"
require_relative "errors"
require_relative "secret"
require_relative "version"

module Postrider
  # A request as a transport sends it. Its headers contain the API key: never log or keep it.
  #
  # repeatable: whether it may be sent on a kept connection, which can turn out to be closed.
  Request = Struct.new(:http_method, :url, :headers, :body, :repeatable, keyword_init: true) do
    def inspect
      "#<#{self.class} #{http_method} #{url}>"
    end
    alias_method :to_s, :inspect

    def pretty_print(printer)
      printer.text(inspect)
    end
  end

  # Makes requests of calls, and holds the API key.
  class RequestBuilder
    # Headers that say where a request ends and how the connection is used.
    FRAMING = /\A(connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)\z/.freeze
    HEADER_NAME = /\A[!#$%&'*+.^_`|~0-9A-Za-z-]+\z/.freeze
    DEPTH_MAX = 100

    def initialize(api_key, base_url, allow_insecure_http, user_agent)
      api_key ||= ENV.fetch("POSTRIDER_API_KEY", "")
      raise ConfigurationError, "The API key is missing: pass it, or set POSTRIDER_API_KEY." if api_key.empty?
      unless api_key.b.match?(/\A[\x21-\x7e]+\z/n)
        raise ConfigurationError, "The API key has characters that no key has, for example a space or a line break: " \
                                  "copy it again."
      end

      @api_key = Secret.new(api_key)
      @base_url = checked_url(base_url || ENV.fetch("POSTRIDER_BASE_URL", ""), allow_insecure_http)
      @user_agent = user_agent
    end

    def build(operation, path, params, options)
      params = params.to_h.transform_keys(&:to_s)
      query, fields = params.partition { |name, _| operation.query.include?(name) }
      Request.new(
        http_method: operation.http_method,
        url: @base_url + filled_path(operation.path, path) + query_text(operation, query),
        headers: headers_of(operation, options),
        body: (json(fields.to_h) if operation.body),
        repeatable: operation.retry
      )
    end

    # Replaces the API key, for example in the page of a proxy that repeats the request.
    def redact(response)
      headers = response.headers.transform_values { |value| @api_key.redact(value) }
      Response.new(response.status, headers, @api_key.redact(response.body.b).force_encoding(response.body.encoding))
    end

    def inspect
      "#<#{self.class} #{@base_url}>"
    end

    private

    def headers_of(operation, options)
      given = (options[:extra_headers] || {}).to_h { |name, value| [name.to_s.downcase, value.to_s] }
      key = options[:idempotency_key] || given["idempotency-key"] || (SecureRandom.uuid if operation.idempotent)
      headers = {
        "Authorization" => "Bearer #{@api_key.reveal}",
        "Service-Version" => SERVICE_VERSION,
        "User-Agent" => [@user_agent, given["user-agent"]].compact.join(" "),
        "Accept" => operation.json? ? operation.accept : "#{operation.accept}, application/json;q=0.5",
        "Content-Type" => operation.body ? "application/json" : nil,
        "Idempotency-Key" => key&.to_s,
        "If-Match" => (options[:if_match] || given["if-match"])&.to_s
      }.compact
      headers = given.except("accept-encoding", "content-type", *headers.keys.map(&:downcase)).merge(headers)
      headers.each { |name, value| check_header(name, value) }
    end

    def check_header(name, value)
      raise ConfigurationError, "The header #{name} cannot be set: the SDK writes it itself." if name.match?(FRAMING)
      raise ConfigurationError, "`extra_headers` has a name that no header can have." unless name.match?(HEADER_NAME)
      return unless value.b.match?(/[\x00-\x08\x0a-\x1f\x7f]/n)

      raise ConfigurationError, "The header #{name} must not contain control characters."
    end

    def filled_path(path, values)
      values = values.dup
      path.gsub(/\{(\w+)\}/) do
        value = values.shift.to_s
        raise ConfigurationError, "`#{$1}` is empty or no identifier." if ["", ".", ".."].include?(value)

        escape(value)
      end
    end

    def query_text(operation, query)
      pairs = query.reject { |_, value| value.nil? }.flat_map do |name, value|
        values = value.is_a?(Array) && operation.repeated.include?(name) ? value : [value]
        values.map { |one| "#{name}=#{escape(plain(one))}" }
      end
      pairs.empty? ? "" : "?#{pairs.join('&')}"
    end

    def plain(value)
      case value
      when Array then value.map { |one| plain(one) }.join(",")
      when Time, DateTime then value.iso8601(3)
      when Date then value.iso8601
      else value.to_s
      end
    end

    def json(fields)
      JSON.generate(jsonable(fields, 0))
    rescue JSON::JSONError, EncodingError => e
      raise ConfigurationError, "The params cannot be written as JSON: #{e.message}. Texts must be UTF-8, files base64."
    end

    # Replaces times by their texts, and checks texts.
    def jsonable(value, depth)
      raise JSON::GeneratorError, "it is nested too deeply" if depth > DEPTH_MAX

      case value
      when Hash then value.to_h { |key, one| [utf8(key.to_s), jsonable(one, depth + 1)] }
      when Array then value.map { |one| jsonable(one, depth + 1) }
      when Time, DateTime, Date then plain(value)
      when String then utf8(value)
      when Symbol then value.to_s
      else value
      end
    end

    def utf8(text)
      text = text.encoding == Encoding::BINARY ? text.dup.force_encoding(Encoding::UTF_8) : text.encode(Encoding::UTF_8)
      text.valid_encoding? ? text : raise(JSON::GeneratorError, "a text is not UTF-8")
    end

    def escape(text)
      text.b.gsub(/[^A-Za-z0-9_.~-]/n) { |byte| format("%%%02X", byte.ord) }
    end

    def checked_url(text, allow_insecure_http)
      if text.empty?
        raise ConfigurationError, "The base URL is missing: pass it, or set POSTRIDER_BASE_URL, for example " \
                                  "https://mail.example.com."
      end
      url = parsed(text)
      host = url&.hostname.to_s.downcase
      if host.empty? || url.userinfo || url.query || url.fragment
        raise ConfigurationError, "The base URL must be like https://mail.example.com, without a user, a query or a fragment."
      end
      if url.scheme == "http" && !allow_insecure_http && !loopback?(host)
        raise ConfigurationError, "The base URL must start with https:, because the API key would be sent unencrypted. " \
                                  "In a trusted network pass `allow_insecure_http: true`."
      end
      text.sub(%r{/+\z}, "")
    end

    def parsed(text)
      url = URI.parse(text)
      url if url.is_a?(URI::HTTP)
    rescue URI::InvalidURIError
      nil
    end

    def loopback?(host)
      host == "localhost" || host == "::1" || host.match?(/\A127(\.\d{1,3}){3}\z/)
    end
  end
end
