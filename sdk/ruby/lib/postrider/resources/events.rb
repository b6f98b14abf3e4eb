# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Product events: what people did in your product.
    class Events < Resource
      SEND = Operation.new(
        name: "events.send", http_method: "POST", path: "/events",
        body: true, idempotent: true, retry: true
      )
      LIST = Operation.new(
        name: "events.list", http_method: "GET", path: "/events",
        query: %w[limit cursor name email user_id created_after created_before], pages: "events", retry: true
      )
      COUNTS = Operation.new(
        name: "events.counts", http_method: "GET", path: "/events/counts",
        query: %w[name from to granularity], retry: true
      )
      GET = Operation.new(
        name: "events.get", http_method: "GET", path: "/events/{id}",
        retry: true
      )
      private_constant :SEND, :LIST, :COUNTS, :GET

      # Send a product event.
      #
      # - `name`: The event name, like `user.created`. No control characters, no leading or trailing spaces, no name of
      #   an event of the service (`email.delivered`)
      # - `type`: Alias of `name`; one of them is required
      # - `user_id`: The person's user id in your product
      # - `email`: The person's email address
      # - `data`: Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are
      #   stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid`
      #   (or the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`
      # - `dry_run`: Dashboard sessions only: run an automation as a test without sending anything
      # - `test_send`: Dashboard sessions only: run an automation as a test and send its messages
      # - `automation_id`: Dashboard sessions only: the automation to test
      #
      # Returns the answer, a hash.
      def send(params = nil, **keywords)
        call(SEND, [], params, keywords)
      end

      # List product events, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `name`: Filter by event name
      # - `email`: Filter by email address
      # - `user_id`: Filter by user id
      # - `created_after`: Only events received after this time
      # - `created_before`: Only events received before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get product event counts by hour or day.
      #
      # - `name`: Filter by event names, separated by commas; all if omitted. `visit` counts visits. At most 1,000 names
      #   per account are counted separately, the others as `(other)`
      # - `from`: Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
      #   before `to` (with `hour`: one day)
      # - `to`: End, exclusive. Default: now, including the current period
      # - `granularity`: Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC;
      #   counts are stored for two years
      #
      # Returns the answer, a hash.
      def counts(params = nil, **keywords)
        call(COUNTS, [], params, keywords)
      end

      # Get a product event.
      #
      # id: The event's id (`ae_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end
    end
  end
end
