# frozen_string_literal: true

# Generated from sdk/operations.json by sdk/generate; do not edit.

require_relative "../resource"

module Postrider
  module Resources
    # Campaigns of the affiliate program: commissions and terms.
    class AffiliateCampaigns < Resource
      LIST = Operation.new(
        name: "affiliateCampaigns.list", http_method: "GET", path: "/affiliate-campaigns",
        query: %w[include_archived], retry: true
      )
      CREATE = Operation.new(
        name: "affiliateCampaigns.create", http_method: "POST", path: "/affiliate-campaigns",
        body: true, idempotent: true, retry: true
      )
      GET = Operation.new(
        name: "affiliateCampaigns.get", http_method: "GET", path: "/affiliate-campaigns/{id}",
        retry: true
      )
      UPDATE = Operation.new(
        name: "affiliateCampaigns.update", http_method: "PATCH", path: "/affiliate-campaigns/{id}",
        body: true, retry: true
      )
      private_constant :LIST, :CREATE, :GET, :UPDATE

      # List all campaigns, newest first.
      #
      # - `include_archived`: Whether to include archived campaigns
      #
      # Returns the answer, a hash.
      def list(params = nil, **keywords)
        call(LIST, [], params, keywords)
      end

      # Create a campaign.
      #
      # - `name` (required): The unique name of the campaign
      # - `visibility`: The people who can see the campaign; defaults to `public`
      # - `auto_approve`: Whether partners who apply with the program's form are approved automatically; defaults to false
      # - `commission_type`: The rate that applies; defaults to `percent`
      # - `commission_bps`: The percentage of a sale in basis points, with `percent`
      # - `commission_flat_cents`: The amount per sale in minor units, with `flat`
      # - `commission_duration`: Whether the first sale or all sales earn a commission; defaults to `recurring`
      # - `recurring_months`: For how many months sales earn a commission; null is unlimited
      # - `max_commission_cents`: Maximum commission per sale
      # - `tiers`: Rates by number of paying customers
      # - `product_rates`: Rates of products and prices
      # - `second_tier_bps`: The recruiting partner's percentage of the same sale in basis points; defaults to 0
      # - `lead_bounty_cents`: The amount per lead in minor units; defaults to 0
      # - `cookie_days`: For how many days a visit is credited to the partner
      # - `hold_days`: For how many days a commission is held for refunds
      # - `archived_at`: When the campaign was archived and stopped accepting partners; null restores it
      # - `make_default`: Whether it becomes the default campaign
      #
      # Returns the answer, a hash.
      def create(params = nil, **keywords)
        call(CREATE, [], params, keywords)
      end

      # Get a campaign.
      #
      # id: The campaign's id (`cmp_…`)
      #
      # Returns the answer, a hash.
      def get(id, **options)
        call(GET, [id], {}, options)
      end

      # Update a campaign; new rates apply to new commissions.
      #
      # - `name`: The unique name of the campaign
      # - `visibility`: The people who can see the campaign; defaults to `public`
      # - `auto_approve`: Whether partners who apply with the program's form are approved automatically; defaults to false
      # - `commission_type`: The rate that applies; defaults to `percent`
      # - `commission_bps`: The percentage of a sale in basis points, with `percent`
      # - `commission_flat_cents`: The amount per sale in minor units, with `flat`
      # - `commission_duration`: Whether the first sale or all sales earn a commission; defaults to `recurring`
      # - `recurring_months`: For how many months sales earn a commission; null is unlimited
      # - `max_commission_cents`: Maximum commission per sale
      # - `tiers`: Rates by number of paying customers
      # - `product_rates`: Rates of products and prices
      # - `second_tier_bps`: The recruiting partner's percentage of the same sale in basis points; defaults to 0
      # - `lead_bounty_cents`: The amount per lead in minor units; defaults to 0
      # - `cookie_days`: For how many days a visit is credited to the partner
      # - `hold_days`: For how many days a commission is held for refunds
      # - `archived_at`: When the campaign was archived and stopped accepting partners; null restores it
      # - `make_default`: Whether it becomes the default campaign
      #
      # id: The campaign's id (`cmp_…`)
      #
      # Returns the answer, a hash.
      def update(id, params = nil, **keywords)
        call(UPDATE, [id], params, keywords)
      end
    end
  end
end
