# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Links of an affiliate.
    class AffiliatesLinks < Resource
      LIST = Operation.new(
        name: "affiliates.links.list", http_method: "GET", path: "/affiliates/{id}/links",
        query: %w[limit cursor], pages: "data", retry: true
      )
      CREATE = Operation.new(
        name: "affiliates.links.create", http_method: "POST", path: "/affiliates/{id}/links",
        body: true, idempotent: true, retry: true
      )
      DELETE = Operation.new(
        name: "affiliates.links.delete", http_method: "DELETE", path: "/affiliates/{id}/links/{link_id}",
        retry: true
      )
      private_constant :LIST, :CREATE, :DELETE

      # List a partner's links, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns a Page.
      def list(id, params = nil, **keywords)
        page(LIST, [id], params, keywords)
      end

      # Create a link for a partner.
      #
      # - `token` (required): The token of the link; it is not changed
      # - `destination_url`: The destination: a path or a URL on the website
      # - `label`: A label for your own use
      #
      # id: The partner's id (`aff_…`)
      #
      # Returns the answer, a hash.
      def create(id, params = nil, **keywords)
        call(CREATE, [id], params, keywords)
      end

      # Delete a link other than the primary one.
      #
      # id: The partner's id (`aff_…`)
      # link_id: The link's id (`afl_…`)
      #
      # Returns the answer, a hash.
      def delete(id, link_id, **options)
        call(DELETE, [id, link_id], {}, options)
      end
    end
  end
end
