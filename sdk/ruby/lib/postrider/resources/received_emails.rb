# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"
require_relative "received_emails_attachments"

module Postrider
  module Resources
    # Received emails.
    class ReceivedEmails < Resource
      LIST = Operation.new(
        name: "receivedEmails.list", http_method: "GET", path: "/received-emails",
        query: %w[limit cursor order to from domain_id spam_status received_after received_before], pages: "received_emails", retry: true
      )
      GET = Operation.new(
        name: "receivedEmails.get", http_method: "GET", path: "/received-emails/{id}",
        query: %w[attachments], retry: true
      )
      RAW = Operation.new(
        name: "receivedEmails.raw", http_method: "GET", path: "/received-emails/{id}/raw",
        accept: "message/rfc822", retry: true
      )
      REPLY = Operation.new(
        name: "receivedEmails.reply", http_method: "POST", path: "/received-emails/{id}/reply",
        body: true, idempotent: true, retry: true
      )
      FORWARD = Operation.new(
        name: "receivedEmails.forward", http_method: "POST", path: "/received-emails/{id}/forward",
        body: true, idempotent: true, retry: true
      )
      DELETE = Operation.new(
        name: "receivedEmails.delete", http_method: "DELETE", path: "/received-emails/{id}",
        retry: true
      )
      private_constant :LIST, :GET, :RAW, :REPLY, :FORWARD, :DELETE

      # Attachments of a received email.
      attr_reader :attachments

      def initialize(client)
        super
        @attachments = ReceivedEmailsAttachments.new(client)
      end

      # List received emails.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `order`: `desc`: newest first. `asc`: in the order of arrival; the last page has a cursor too, and later
      #   arrivals follow it without gaps
      # - `to`: Envelope recipient; any of several, separated by commas
      # - `from`: Address of the author or of the envelope sender; any of several, separated by commas
      # - `domain_id`: Receiving domain (`dom_…`); any of several, separated by commas
      # - `spam_status`: Spam status; any of several, separated by commas
      # - `received_after`: Only those received after this time
      # - `received_before`: Only those received before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a received email with its attachments.
      #
      # - `attachments`: `inline`: attachments are included in base64; `none`: only their metadata. Fetch large attachments one
      #   by one
      #
      # id: The received email's id (`inb_…`)
      #
      # Returns the answer, a hash.
      def get(id, params = nil, **keywords)
        call(GET, [id], params, keywords)
      end

      # Get the raw message of a received email.
      #
      # id: The received email's id (`inb_…`)
      #
      # Returns the bytes of message/rfc822.
      def raw(id, **options)
        call(RAW, [id], {}, options)
      end

      # Reply to a received email.
      #
      # - `html`: The HTML body
      # - `text`: The plain-text body
      #
      # id: The received email's id (`inb_…`)
      #
      # Returns the answer, a hash.
      def reply(id, params = nil, **keywords)
        call(REPLY, [id], params, keywords)
      end

      # Forward a received email as an attachment.
      #
      # - `to` (required): Recipients
      # - `text`: Text above the forwarded message
      #
      # id: The received email's id (`inb_…`)
      #
      # Returns the answer, a hash.
      def forward(id, params = nil, **keywords)
        call(FORWARD, [id], params, keywords)
      end

      # Delete a received email and its message.
      #
      # id: The received email's id (`inb_…`)
      #
      # Returns the answer, a hash.
      def delete(id, **options)
        call(DELETE, [id], {}, options)
      end
    end
  end
end
