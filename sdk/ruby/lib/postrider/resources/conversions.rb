# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Conversions.
    class Conversions < Resource
      LIST = Operation.new(
        name: "conversions.list", http_method: "GET", path: "/conversions",
        query: %w[limit cursor kind source email user_id created_after created_before], pages: "conversions", retry: true
      )
      private_constant :LIST

      # List sign-ups and subscriptions, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `kind`: Filter by kind
      # - `source`: Filter by the measured source of the first visit
      # - `email`: Filter by email address
      # - `user_id`: Filter by user id
      # - `created_after`: Only those whose event was received after this time
      # - `created_before`: Only those whose event was received before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end
    end
  end
end
