# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Events of an email.
    class EmailsEvents < Resource
      LIST = Operation.new(
        name: "emails.events.list", http_method: "GET", path: "/emails/{id}/events",
        query: %w[limit cursor], pages: "events", retry: true
      )
      private_constant :LIST

      # List the events of an email, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # id: The email's id (`msg_…`)
      #
      # Returns a Page.
      def list(id, params = nil, **keywords)
        page(LIST, [id], params, keywords)
      end
    end
  end
end
