# frozen_string_literal: true

require_relative "webhooks"

module Postrider
  # A Rack application that receives webhooks, for `config.ru` and for `mount` in routes of Rails:
  #
  #   mount Postrider::WebhookEndpoint.new(secret: ENV["POSTRIDER_WEBHOOK_SECRET"]) { |event| … } => "/webhooks/postrider"
  #
  # It answers 401 to requests whose signature is wrong, and 204 when the block returns. If the block raises an error, the
  # application answers 500 as for any error, and the server delivers the webhook again.
  class WebhookEndpoint
    def initialize(secret:, tolerance: 300, &handler)
      raise ArgumentError, "a block is missing" unless handler

      @secret = secret
      @tolerance = tolerance
      @handler = handler
    end

    def call(environment)
      return answer(405, "POST only", "allow" => "POST") unless environment["REQUEST_METHOD"] == "POST"

      begin
        event = Webhooks.event_from_request(environment, @secret, tolerance: @tolerance)
      rescue SignatureError => e
        return answer(401, e.message)
      end
      @handler.call(event)
      [204, {}, []]
    end

    def inspect
      "#<#{self.class}>"
    end

    private

    def answer(status, text, headers = {})
      [status, { "content-type" => "text/plain; charset=utf-8" }.merge(headers), ["#{text}\n"]]
    end
  end
end
