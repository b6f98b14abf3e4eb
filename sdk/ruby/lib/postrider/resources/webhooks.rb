# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "webhooks_deliveries"

module Postrider
  module Resources
    # Webhooks.
    class Webhooks < Resource
      CREATE = Operation.new(
        name: "webhooks.create", http_method: "POST", path: "/webhooks",
        body: true
      )
      LIST = Operation.new(
        name: "webhooks.list", http_method: "GET", path: "/webhooks",
        query: %w[limit cursor], pages: "webhooks", retry: true
      )
      GET = Operation.new(
        name: "webhooks.get", http_method: "GET", path: "/webhooks/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "webhooks.update", http_method: "PATCH", path: "/webhooks/{id}",
        body: true, retry: true
      )
      DELETE = Operation.new(
        name: "webhooks.delete", http_method: "DELETE", path: "/webhooks/{id}",
        retry: true
      )
      ROTATE_SECRET = Operation.new(
        name: "webhooks.rotateSecret", http_method: "POST", path: "/webhooks/{id}/rotate-secret",
        body: true
      )
      TEST = Operation.new(
        name: "webhooks.test", http_method: "POST", path: "/webhooks/{id}/test",
        body: true
      )
      REPLAY = Operation.new(
        name: "webhooks.replay", http_method: "POST", path: "/webhooks/{id}/replay",
        body: true
      )
      private_constant :CREATE, :LIST, :GET, :UPDATE, :DELETE, :ROTATE_SECRET, :TEST, :REPLAY

      # Deliveries to a webhook.
      attr_reader :deliveries

      def initialize(client)
        super
        @deliveries = WebhooksDeliveries.new(client)
      end

      # Create a webhook endpoint (its secret is shown once).
      #
      # - `url` (required): URL for deliveries: https, at a public address
      # - `events`: The events to send; empty: all except email.cancelled, domain.verified, domain.degraded,
      #   suppression.created, suppression.deleted, webhook.disabled, which must be named
      # - `enabled`: Whether events are sent; default: true
      # - `description`: Your description
      # - `domain_ids`: Only events of these domains (`dom_…`) are sent; empty: all
      # - `inbound_addresses`: Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
      #   (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events
      #   are not affected
      # - `retry_policy`: `default`: five attempts within five minutes; `extended`: eight within 28 hours
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List webhook endpoints, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a webhook endpoint.
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Update a webhook endpoint.
      #
      # - `url`: URL for deliveries: https, at a public address
      # - `events`: The events to send; empty: all except email.cancelled, domain.verified, domain.degraded,
      #   suppression.created, suppression.deleted, webhook.disabled, which must be named
      # - `enabled`: Whether events are sent; default: true
      # - `description`: Your description
      # - `domain_ids`: Only events of these domains (`dom_…`) are sent; empty: all
      # - `inbound_addresses`: Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
      #   (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events
      #   are not affected
      # - `retry_policy`: `default`: five attempts within five minutes; `extended`: eight within 28 hours
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end

      # Delete a webhook endpoint.
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end

      # Rotate the secret of a webhook endpoint.
      #
      # - `grace_hours`: Hours during which the old secret still signs, in addition to the new one
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns the answer, a hash.
      def rotate_secret(id, params = nil, **keywords)
        call(ROTATE_SECRET, [id], params, keywords)
      end

      # Send a test event to a webhook endpoint.
      #
      # - `event` (required): An event name
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns the answer, a hash.
      def test(id, params = nil, **keywords)
        call(TEST, [id], params, keywords)
      end

      # Replay deliveries of a time range.
      #
      # - `since` (required): Deliveries created at this time or later
      # - `until`: Deliveries created before this time; default: now
      # - `status`: Deliveries with this status
      # - `events`: Deliveries of these events; default: all
      #
      # id: The endpoint's id (`whk_…`)
      #
      # Returns the answer, a hash.
      def replay(id, params = nil, **keywords)
        call(REPLAY, [id], params, keywords)
      end
    end
  end
end
