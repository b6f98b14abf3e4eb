# frozen_string_literal: true

require "json"
require "openssl"
require_relative "errors"
require_relative "webhook_event"

module Postrider
  # Verifies the webhooks that the server sends.
  module Webhooks
    # Bytes of a request's body that are read.
    BODY_MAX = 1024 * 1024

    module_function

    # Verifies a request and returns its event. Raises SignatureError if no signature is right: answer 401.
    #
    # payload:   the body as it came, not parsed
    # headers:   of the request, or the Rack environment
    # secret:    `whsec_…` of the endpoint; an array while it is replaced
    # tolerance: seconds that the signature's time may differ from now
    def construct_event(payload, headers, secret, tolerance: 300, now: nil)
      secrets = Array(secret).map { |one| one.to_s.strip }.reject(&:empty?)
      raise ConfigurationError, "The webhook secret is missing: it was shown when the webhook was made." if secrets.empty?

      headers = named(headers)
      times = signatures(headers).flat_map do |time, signature, id|
        secrets.filter_map do |one|
          expected = id ? base64(payload, time, id, one) : hex(payload, time, one)
          time.to_i if expected && OpenSSL.secure_compare(expected, signature)
        end
      end
      check(times, headers, tolerance, (now || Time.now).to_i)
      event_of(payload) || raise(SignatureError, "The signature is right, but the body is no event.")
    end

    # The same for a request of Rails or Rack, or a Rack environment.
    def event_from_request(request, secret, tolerance: 300)
      environment = request.is_a?(Hash) ? request : request.env
      construct_event(body_of(request, environment), environment, secret, tolerance: tolerance)
    end

    # Signs a payload as the server does, for tests of webhook handlers.
    def generate_test_header(payload:, secret:, timestamp: nil, id: "evt_test")
      time = (timestamp || Time.now).to_i.to_s
      signature = base64(payload, time, id, secret) || raise(ConfigurationError, "The secret must be `whsec_` and base64.")
      {
        "Service-Signature" => "t=#{time},v1=#{hex(payload, time, secret)}",
        "webhook-id" => id,
        "webhook-timestamp" => time,
        "webhook-signature" => "v1,#{signature}"
      }
    end

    class << self
      private

      def check(times, headers, tolerance, now)
        if times.empty?
          sent = headers.key?("service-signature") || headers.key?("webhook-signature")
          raise SignatureError, "The request has no signature: neither `Service-Signature` nor `webhook-signature`." unless sent

          raise SignatureError, "The signature is wrong: use the secret of this endpoint, and the body exactly as it came."
        end
        return if times.any? { |time| (now - time).abs <= tolerance }

        raise TimestampError, "The webhook was signed at #{Time.at(times.first).utc.iso8601} and the time here is " \
                              "#{Time.at(now).utc.iso8601}: more than #{tolerance} s apart. Check the clock."
      end

      # All signatures of both families: time, signature, and the id in the second family.
      def signatures(headers)
        pairs = headers.fetch("service-signature", "").split(",").map(&:strip)
        time = pairs.filter_map { |pair| pair[/\At=(\d{1,12})\z/, 1] }.first.to_s
        found = pairs.filter_map { |pair| [time, pair.delete_prefix("v1="), nil] if pair.start_with?("v1=") }
        time = headers.fetch("webhook-timestamp", "")
        return found unless time.match?(/\A\d{1,12}\z/)

        standard = headers.fetch("webhook-signature", "").scan(%r{(?<![^\s,])v1,([A-Za-z0-9+/=]+)}n).flatten
        found + standard.map { |one| [time, one, headers.fetch("webhook-id", "")] }
      end

      def hex(payload, time, secret)
        OpenSSL::HMAC.hexdigest("SHA256", secret, "#{time}.".b << payload.b)
      end

      def base64(payload, time, id, secret)
        key = secret.delete_prefix("whsec_").unpack1("m0") if secret.start_with?("whsec_")
        return if key.nil? || key.empty?

        [OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{time}.".b << payload.b)].pack("m0")
      rescue ArgumentError
        nil
      end

      def event_of(payload)
        WebhookEvent.from_hash(JSON.parse(payload, symbolize_names: true, max_nesting: 128))
      rescue JSON::ParserError, EncodingError
        nil
      end

      # Headers by name in lower case; `HTTP_` names are those of Rack. The values of a header that occurs several times are
      # joined by commas (RFC 9110, 5.2).
      def named(headers)
        headers.to_h.each_with_object({}) do |(name, value), named|
          name = name.to_s.downcase.tr("_", "-").delete_prefix("http-")
          values = [named[name], *(value.is_a?(Array) ? value : [value])].grep(String).map { |one| one.b.strip }
          named[name] = values.join(", ") unless values.empty?
        end
      end

      def body_of(request, environment)
        return request.raw_post if request.respond_to?(:raw_post)

        input = environment["rack.input"]
        return "" if input.nil?

        input.rewind if input.respond_to?(:rewind)
        body = input.read(BODY_MAX) || ""
        input.rewind if input.respond_to?(:rewind)
        body
      end
    end
  end
end
