# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Deliveries to a webhook.
    class WebhooksDeliveries < Resource
      LIST = Operation.new(
        name: "webhooks.deliveries.list", http_method: "GET", path: "/webhooks/{id}/deliveries",
        query: %w[limit cursor status type created_after created_before], pages: "deliveries", retry: true
      )
      GET = Operation.new(
        name: "webhooks.deliveries.get", http_method: "GET", path: "/webhooks/{id}/deliveries/{delivery_id}",
        retry: true
      )
      REPLAY = Operation.new(
        name: "webhooks.deliveries.replay", http_method: "POST", path: "/webhooks/{id}/deliveries/{delivery_id}/replay"
      )
      private_constant :LIST, :GET, :REPLAY

      # List deliveries, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Any of these, separated by commas: pending, delivered, failed
      # - `type`: Any of these, separated by commas: email.received, email.sent, email.delivered,
      #   email.delivery_delayed, email.bounced, email.complained, email.opened, email.clicked, email.failed,
      #   email.suppressed, email.scheduled, contact.unsubscribed, automation.started,
      #   automation.step_completed, automation.completed, automation.failed, email.cancelled, domain.verified,
      #   domain.degraded, suppression.created, suppression.deleted, webhook.disabled, affiliate.created,
      #   affiliate.approved, affiliate.updated, referral.created, referral.converted, commission.created,
      #   commission.earned, commission.reversed, commission.paid, payout.created, payout.paid, payout.failed
      # - `created_after`: Only those created after this time
      # - `created_before`: Only those created before this time
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns a Page.
      def list(id, params = nil, **keywords)
        page(LIST, [id], params, keywords)
      end

      # Get a delivery with its body and attempts.
      #
      # id: The endpoint's id (`whk_…`)
      # delivery_id: The delivery's id (`whd_…`)
      #
      # Returns the answer, a hash.
      def get(id, delivery_id, **options)
        call(GET, [id, delivery_id], {}, options)
      end

      # Replay a delivery.
      #
      # id: The endpoint's id (`whk_…`)
      # delivery_id: The delivery's id (`whd_…`)
      #
      # Returns the answer, a hash.
      def replay(id, delivery_id, **options)
        call(REPLAY, [id, delivery_id], {}, options)
      end
    end
  end
end
