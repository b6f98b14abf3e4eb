# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Delivery attempts of an email.
    class EmailsAttempts < Resource
      LIST = Operation.new(
        name: "emails.attempts.list", http_method: "GET", path: "/emails/{id}/attempts",
        query: %w[limit cursor], pages: "attempts", retry: true
      )
      private_constant :LIST

      # List the delivery attempts of an email, newest first.
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
