# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Claims on domains that another account has.
    class DomainsClaims < Resource
      CREATE = Operation.new(
        name: "domains.claims.create", http_method: "POST", path: "/domains/claims",
        body: true
      )
      LIST = Operation.new(
        name: "domains.claims.list", http_method: "GET", path: "/domains/claims",
        query: %w[limit cursor], pages: "claims", retry: true
      )
      GET = Operation.new(
        name: "domains.claims.get", http_method: "GET", path: "/domains/claims/{id}",
        retry: true
      )
      CANCEL = Operation.new(
        name: "domains.claims.cancel", http_method: "POST", path: "/domains/claims/{id}/cancel"
      )
      VERIFY = Operation.new(
        name: "domains.claims.verify", http_method: "POST", path: "/domains/claims/{id}/verify"
      )
      private_constant :CREATE, :LIST, :GET, :CANCEL, :VERIFY

      # Claim a domain of another account.
      #
      # - `name` (required): The domain
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # List claims, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a claim.
      #
      # id: The claim's id (`clm_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Cancel a claim.
      #
      # id: The claim's id (`clm_…`)
      #
      # Returns the answer, a hash.
      def cancel(id, **options)
        call(CANCEL, [id], {}, options)
      end

      # Verify a claim's record now.
      #
      # id: The claim's id (`clm_…`)
      #
      # Returns the answer, a hash.
      def verify(id, **options)
        call(VERIFY, [id], {}, options)
      end
    end
  end
end
