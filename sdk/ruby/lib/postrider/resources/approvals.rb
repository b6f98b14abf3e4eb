# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Requests that wait for a person's approval.
    class Approvals < Resource
      LIST = Operation.new(
        name: "approvals.list", http_method: "GET", path: "/approvals",
        query: %w[limit cursor status], pages: "approvals", retry: true
      )
      GET = Operation.new(
        name: "approvals.get", http_method: "GET", path: "/approvals/{id}",
        retry: true
      )
      private_constant :LIST, :GET

      # List requests that wait for approval and decided ones, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Filter by status
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get an approval, with the response once the request was executed.
      #
      # id: The approval's id (`apr_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end
    end
  end
end
