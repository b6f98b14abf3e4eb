# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # The stream of webhook events.
    class WebhookEvents < Resource
      LIST = Operation.new(
        name: "webhookEvents.list", http_method: "GET", path: "/webhook-events",
        query: %w[limit cursor types order], pages: "events", retry: true
      )
      STREAM = Operation.new(
        name: "webhookEvents.stream", http_method: "GET", path: "/webhook-events", query: %w[types],
        accept: "text/event-stream", retry: true
      )
      private_constant :LIST, :STREAM

      # List events, or stream them as server-sent events.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `types`: Any of these, separated by commas: email.received, email.sent, email.delivered,
      #   email.delivery_delayed, email.bounced, email.complained, email.opened, email.clicked, email.failed,
      #   email.suppressed, email.scheduled, contact.unsubscribed, automation.started,
      #   automation.step_completed, automation.completed, automation.failed, email.cancelled, domain.verified,
      #   domain.degraded, suppression.created, suppression.deleted, webhook.disabled, affiliate.created,
      #   affiliate.approved, affiliate.updated, referral.created, referral.converted, commission.created,
      #   commission.earned, commission.reversed, commission.paid, payout.created, payout.paid, payout.failed
      # - `order`: `asc`: oldest first, and the last page has a cursor too, for polling; `desc`: newest first
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Yields events as they happen, for ever: lost connections are made again, and no event is left out. Without a block
      # it returns an Enumerator.
      #
      # - `types`: Only these types of events
      # - `after`: The cursor of the last event that was read before
      def stream(params = nil, **keywords, &block)
        return enum_for(:stream, params, **keywords) unless block

        params, options = divided(params, keywords)
        @client.stream(STREAM, params, options, &block)
      end
    end
  end
end
