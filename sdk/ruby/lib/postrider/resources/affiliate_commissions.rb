# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # What affiliates earned.
    class AffiliateCommissions < Resource
      LIST = Operation.new(
        name: "affiliateCommissions.list", http_method: "GET", path: "/affiliate-commissions",
        query: %w[limit cursor status affiliate_id referral_id payout_id currency created_after created_before], pages: "data", retry: true
      )
      GET = Operation.new(
        name: "affiliateCommissions.get", http_method: "GET", path: "/affiliate-commissions/{id}",
        retry: true
      )
      REVERSE = Operation.new(
        name: "affiliateCommissions.reverse", http_method: "PATCH", path: "/affiliate-commissions/{id}",
        body: true, retry: true
      )
      private_constant :LIST, :GET, :REVERSE

      # List commissions, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Filter by status; several separated by commas
      # - `affiliate_id`: The partner (`aff_…`)
      # - `referral_id`: The referral (`ref_…`)
      # - `payout_id`: The payout (`pay_…`) that the commissions are in
      # - `currency`: Filter by currency; several separated by commas
      # - `created_after`: Only those created at this time or later
      # - `created_before`: Only those created before this time
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a commission.
      #
      # id: The commission's id (`com_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Reverse a commission that is neither paid nor in a payout.
      #
      # - `status` (required): Reverses the commission
      # - `reason`: The reason; `fraud` also reverses the recruiting partner's commission
      # - `note`: Your team's note; sent with the event
      #
      # id: The commission's id (`com_…`)
      #
      # Returns the answer, a hash.
      def reverse(id, params = nil, **keywords)
        call(REVERSE, [id], params, keywords)
      end
    end
  end
end
