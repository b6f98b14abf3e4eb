# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "emails_events"
require_relative "emails_attempts"
require_relative "emails_attachments"

module Postrider
  module Resources
    # Emails that were sent or are waiting.
    class Emails < Resource
      SEND = Operation.new(
        name: "emails.send", http_method: "POST", path: "/emails",
        body: true, idempotent: true, retry: true
      )
      SEND_BATCH = Operation.new(
        name: "emails.sendBatch", http_method: "POST", path: "/emails/batch",
        body: true, idempotent: true, retry: true
      )
      LIST = Operation.new(
        name: "emails.list", http_method: "GET", path: "/emails",
        query: %w[limit cursor status to from tag category template domain_id q created_after created_before], repeated: %w[tag], pages: "emails", retry: true
      )
      METRICS = Operation.new(
        name: "emails.metrics", http_method: "GET", path: "/emails/metrics",
        query: %w[from to granularity dimensions domain category metrics], retry: true
      )
      GET = Operation.new(
        name: "emails.get", http_method: "GET", path: "/emails/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "emails.update", http_method: "PATCH", path: "/emails/{id}",
        body: true, retry: true
      )
      CANCEL = Operation.new(
        name: "emails.cancel", http_method: "POST", path: "/emails/{id}/cancel"
      )
      RESEND = Operation.new(
        name: "emails.resend", http_method: "POST", path: "/emails/{id}/resend",
        body: true, idempotent: true, retry: true
      )
      TEST_EVENT = Operation.new(
        name: "emails.testEvent", http_method: "POST", path: "/emails/test",
        body: true
      )
      RAW = Operation.new(
        name: "emails.raw", http_method: "GET", path: "/emails/{id}/raw",
        accept: "message/rfc822", retry: true
      )
      private_constant :SEND, :SEND_BATCH, :LIST, :METRICS, :GET, :UPDATE, :CANCEL, :RESEND, :TEST_EVENT, :RAW

      # Events of an email.
      attr_reader :events
      # Delivery attempts of an email.
      attr_reader :attempts
      # Attachments of an email.
      attr_reader :attachments

      def initialize(client)
        super
        @events = EmailsEvents.new(client)
        @attempts = EmailsAttempts.new(client)
        @attachments = EmailsAttachments.new(client)
      end

      # Send an email.
      #
      # - `from`: The author: `Ada <ada@example.com>`; its domain must be verified
      # - `to` (required): Recipients
      # - `cc`: Recipients of a copy
      # - `bcc`: Recipients of a blind copy
      # - `reply_to`: Addresses for replies (also `replyTo`)
      # - `subject`: The subject
      # - `html`: The HTML body (also `htmlBody`, `html_body`)
      # - `text`: The plain-text body (also `textBody`, `text_body`, `plain_body`)
      # - `headers`: Custom headers; headers that control transport are rejected
      # - `tags`: Stored with the email and sent along with its events
      # - `attachments`: The attachments
      # - `category`: The category
      # - `scheduled_at`: When to send the email; attachments are not supported (also `scheduledAt`)
      # - `expires_in`: Lifetime in seconds: the email is sent with priority and fails after this time
      # - `on_suppressed`: If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email
      # - `unsubscribe`: Managed unsubscribe (RFC 8058)
      # - `template`: A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the
      #   subject, author, reply addresses and category if they are omitted (also `template_id`, `templateId`,
      #   `template_alias`, `templateAlias`)
      # - `variables`: The template's variables by name (also `template_data`, `templateData`, `data_variables`,
      #   `dataVariables`, `dynamic_template_data`)
      #
      # Returns the answer, a hash.
      def send(params = nil, **keywords)
        call(SEND, [], params, keywords)
      end

      # Send up to 100 emails in one request.
      #
      # Returns the answer, a hash.
      def send_batch(params = nil, **keywords)
        call(SEND_BATCH, [], params, keywords)
      end

      # List emails, newest first; all given filters must match.
      #
      # - `limit`: Maximum number of entries. With filters a page may be shorter, or empty, while `has_more` is true: a
      #   request reads a bounded number of emails. Continue with `next_cursor`
      # - `cursor`: `next_cursor` of the previous page; repeat the same filters
      # - `status`: Filter by status; several separated by commas
      # - `to`: Filter by recipient address in `to`, `cc` or `bcc`; several separated by commas
      # - `from`: Filter by sender address; several separated by commas
      # - `tag`: Filter by tag, `name:value`; if repeated, all must match
      # - `category`: Filter by category; several separated by commas
      # - `template`: Filter by template, by id or by the alias used when sending; several separated by commas
      # - `domain_id`: Filter by sending domain (`dom_…`); several separated by commas
      # - `q`: Words in the subject; all must match, in any order, case-insensitive
      # - `created_after`: Only emails accepted after this time
      # - `created_before`: Only emails accepted before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get email metrics by hour or day, optionally by dimension.
      #
      # - `from`: Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
      #   before `to` (with `hour`: one day)
      # - `to`: End, exclusive. Default: now, including the current period
      # - `granularity`: Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC;
      #   counts are stored for two years
      # - `dimensions`: Group by sending domain, by tag (`name:value`), by template alias, by the provider of the recipient's
      #   mail host (known from the first attempt on, so `sent` is not counted by provider), or by category.
      #   With several dimensions, each has its own rows. At most 100 values per hour are counted apart, the
      #   others together as `(other)`: other domains, other tags and so on. With a filter, pairs of category
      #   and domain are the values, so that `category` can be `(other)` too: email of the domain whose category
      #   was not counted apart. The category of email that was counted before counts had categories is
      #   `(unknown)`
      # - `domain`: Count the email of this sending domain only. With a filter, `dimensions` can be `domain` and
      #   `category`
      # - `category`: Count the email of this category only, alone or together with `domain`
      # - `metrics`: Counters to return, and `delivery_time`: how long deliveries took; all if omitted
      #
      # Returns the answer, a hash.
      def metrics(params = nil, **keywords)
        call(METRICS, [], params, keywords)
      end

      # Get an email.
      #
      # id: The email's id (`msg_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Reschedule or cancel a scheduled email.
      #
      # - `scheduled_at`: The new time to send the email
      # - `cancel`: Cancels the email; must be true
      #
      # id: The email's id (`msg_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end

      # Cancel a scheduled email.
      #
      # id: The email's id (`msg_…`)
      #
      # Returns the answer, a hash.
      def cancel(id, **options)
        call(CANCEL, [id], {}, options)
      end

      # Resend a stored email, with its attachments on request.
      #
      # - `attachments`: Whether the new email also has the attachments; without them, the response has the warning
      #   `attachments_omitted`
      #
      # id: The email's id (`msg_…`)
      #
      # Returns the answer, a hash.
      def resend(id, params = nil, **keywords)
        call(RESEND, [id], params, keywords)
      end

      # Send a test event to webhooks.
      #
      # - `event` (required): The event name
      # - `email_id`: The email that the event is about (`msg_…`)
      # - `deliver`: Whether to send it to subscribed endpoints; defaults to true
      #
      # Returns the answer, a hash.
      def test_event(params = nil, **keywords)
        call(TEST_EVENT, [], params, keywords)
      end

      # Get the message as it was sent.
      #
      # id: The email's id (`msg_…`)
      #
      # Returns the bytes of message/rfc822.
      def raw(id, **options)
        call(RAW, [id], {}, options)
      end
    end
  end
end
