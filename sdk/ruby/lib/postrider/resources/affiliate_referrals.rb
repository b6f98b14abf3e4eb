# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # People that affiliates referred.
    class AffiliateReferrals < Resource
      LIST = Operation.new(
        name: "affiliateReferrals.list", http_method: "GET", path: "/affiliate-referrals",
        query: %w[limit cursor status source affiliate_id email created_after created_before], pages: "data", retry: true
      )
      CREATE = Operation.new(
        name: "affiliateReferrals.create", http_method: "POST", path: "/affiliate-referrals",
        body: true, idempotent: true, retry: true
      )
      GET = Operation.new(
        name: "affiliateReferrals.get", http_method: "GET", path: "/affiliate-referrals/{id}",
        retry: true
      )
      private_constant :LIST, :CREATE, :GET

      # List referrals, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Filter by status; several separated by commas
      # - `source`: Filter by source; several separated by commas
      # - `affiliate_id`: The partner (`aff_…`)
      # - `email`: The exact email address, case-insensitive
      # - `created_after`: Only those created at this time or later
      # - `created_before`: Only those created before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Create a referral.
      #
      # - `affiliate_id`: The partner's id (`aff_…`); either this or `token` is required
      # - `token`: The token of a link of the partner
      # - `email` (required): The person's email address
      # - `processor_customer_id`: The payment processor's customer id; assigns later payments to the referral
      # - `sub_id`: A tag for the partner's reports
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # Get a referral.
      #
      # id: The referral's id (`ref_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end
    end
  end
end
