# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Published versions of an automation.
    class AutomationsVersions < Resource
      LIST = Operation.new(
        name: "automations.versions.list", http_method: "GET", path: "/automations/{id}/versions",
        query: %w[limit cursor], pages: "versions", retry: true
      )
      private_constant :LIST

      # List versions, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # id: The automation's id (`aut_…`)
      #
      # Returns a Page.
      def list(id, params = nil, **keywords)
        page(LIST, [id], params, keywords)
      end
    end
  end
end
