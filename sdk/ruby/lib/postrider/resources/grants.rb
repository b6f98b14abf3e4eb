# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # What users have allowed apps to do.
    class Grants < Resource
      LIST = Operation.new(
        name: "grants.list", http_method: "GET", path: "/grants",
        query: %w[limit cursor], pages: "grants", retry: true
      )
      GET = Operation.new(
        name: "grants.get", http_method: "GET", path: "/grants/{id}",
        retry: true
      )
      REVOKE = Operation.new(
        name: "grants.revoke", http_method: "DELETE", path: "/grants/{id}",
        retry: true
      )
      private_constant :LIST, :GET, :REVOKE

      # List what users have allowed apps to do, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a grant.
      #
      # id: The grant's id (`grant_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Revoke a grant: its app loses access at once.
      #
      # id: The grant's id (`grant_…`)
      #
      # Returns the answer, a hash.
      def revoke(id, **options)
        call(REVOKE, [id], {}, options)
      end
    end
  end
end
