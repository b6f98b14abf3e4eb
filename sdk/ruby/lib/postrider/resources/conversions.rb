# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Conversions.
    class Conversions < Resource
      LIST = Operation.new(
        name: "conversions.list", http_method: "GET", path: "/conversions",
        query: %w[limit cursor], pages: "conversions", retry: true
      )
      private_constant :LIST

      # List sign-ups and subscriptions, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end
    end
  end
end
