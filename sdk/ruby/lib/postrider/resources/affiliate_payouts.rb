# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Payments to affiliates.
    class AffiliatePayouts < Resource
      LIST = Operation.new(
        name: "affiliatePayouts.list", http_method: "GET", path: "/affiliate-payouts",
        query: %w[limit cursor status affiliate_id run_id], pages: "data", retry: true
      )
      GET = Operation.new(
        name: "affiliatePayouts.get", http_method: "GET", path: "/affiliate-payouts/{id}",
        retry: true
      )
      MARK_PAID = Operation.new(
        name: "affiliatePayouts.markPaid", http_method: "POST", path: "/affiliate-payouts/{id}/mark-paid",
        body: true, idempotent: true, retry: true
      )
      private_constant :LIST, :GET, :MARK_PAID

      # List payouts, newest first.
      #
      # - `limit`: Number of entries
      # - `cursor`: `next_cursor` of the previous page
      # - `status`: Filter by status; several separated by commas
      # - `affiliate_id`: The partner (`aff_…`)
      # - `run_id`: The payout run (`prn_…`)
      #
      # Returns a Page.
      def list(params = nil, **keywords)
        page(LIST, [], params, keywords)
      end

      # Get a payout.
      #
      # id: The payout's id (`pay_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Mark a manual payout as paid, with its proof.
      #
      # - `reference` (required): Reference of the payment, as proof
      #
      # id: The payout's id (`pay_…`)
      #
      # Returns the answer, a hash.
      def mark_paid(id, params = nil, **keywords)
        call(MARK_PAID, [id], params, keywords)
      end
    end
  end
end
