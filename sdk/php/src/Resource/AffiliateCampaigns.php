<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Campaigns of the affiliate program: commissions and terms.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAffiliateCampaignsParams from Types
 * @phpstan-import-type ListAffiliateCampaignsResponse from Types
 * @phpstan-import-type CreateAffiliateCampaignParams from Types
 * @phpstan-import-type CreateAffiliateCampaignResponse from Types
 * @phpstan-import-type OneAffiliateCampaign from Types
 * @phpstan-import-type UpdateAffiliateCampaignParams from Types
 * @phpstan-import-type UpdateAffiliateCampaignResponse from Types
 */
final class AffiliateCampaigns
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List all campaigns, newest first.
     *
     * Fields of `$params`:
     * - `include_archived`: Whether to include archived campaigns
     *
     * @param ListAffiliateCampaignsParams $params
     * @param Options $options
     *
     * @return ListAffiliateCampaignsResponse
     */
    public function list(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'affiliateCampaigns.list',
            'GET',
            '/affiliate-campaigns',
            query: ['include_archived'],
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Create a campaign.
     *
     * Fields of `$params`:
     * - `name` (required): The unique name of the campaign
     * - `visibility`: The people who can see the campaign; defaults to `public`
     * - `auto_approve`: Whether partners who apply with the program's form are approved automatically; defaults to false
     * - `commission_type`: The rate that applies; defaults to `percent`
     * - `commission_bps`: The percentage of a sale in basis points, with `percent`
     * - `commission_flat_cents`: The amount per sale in minor units, with `flat`
     * - `commission_duration`: Whether the first sale or all sales earn a commission; defaults to `recurring`
     * - `recurring_months`: For how many months sales earn a commission; null is unlimited
     * - `max_commission_cents`: Maximum commission per sale
     * - `tiers`: Rates by number of paying customers
     * - `product_rates`: Rates of products and prices
     * - `second_tier_bps`: The recruiting partner's percentage of the same sale in basis points; defaults to 0
     * - `lead_bounty_cents`: The amount per lead in minor units; defaults to 0
     * - `cookie_days`: For how many days a visit is credited to the partner
     * - `hold_days`: For how many days a commission is held for refunds
     * - `archived_at`: When the campaign was archived and stopped accepting partners; null restores it
     * - `make_default`: Whether it becomes the default campaign
     *
     * @param CreateAffiliateCampaignParams $params
     * @param Options $options
     *
     * @return CreateAffiliateCampaignResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'affiliateCampaigns.create',
            'POST',
            '/affiliate-campaigns',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get a campaign.
     *
     * @param string $id The campaign's id (`cmp_…`)
     * @param Options $options
     *
     * @return OneAffiliateCampaign
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliateCampaigns.get',
            'GET',
            '/affiliate-campaigns/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Update a campaign; new rates apply to new commissions.
     *
     * Fields of `$params`:
     * - `name`: The unique name of the campaign
     * - `visibility`: The people who can see the campaign; defaults to `public`
     * - `auto_approve`: Whether partners who apply with the program's form are approved automatically; defaults to false
     * - `commission_type`: The rate that applies; defaults to `percent`
     * - `commission_bps`: The percentage of a sale in basis points, with `percent`
     * - `commission_flat_cents`: The amount per sale in minor units, with `flat`
     * - `commission_duration`: Whether the first sale or all sales earn a commission; defaults to `recurring`
     * - `recurring_months`: For how many months sales earn a commission; null is unlimited
     * - `max_commission_cents`: Maximum commission per sale
     * - `tiers`: Rates by number of paying customers
     * - `product_rates`: Rates of products and prices
     * - `second_tier_bps`: The recruiting partner's percentage of the same sale in basis points; defaults to 0
     * - `lead_bounty_cents`: The amount per lead in minor units; defaults to 0
     * - `cookie_days`: For how many days a visit is credited to the partner
     * - `hold_days`: For how many days a commission is held for refunds
     * - `archived_at`: When the campaign was archived and stopped accepting partners; null restores it
     * - `make_default`: Whether it becomes the default campaign
     *
     * @param string $id The campaign's id (`cmp_…`)
     * @param UpdateAffiliateCampaignParams $params
     * @param Options $options
     *
     * @return UpdateAffiliateCampaignResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'affiliateCampaigns.update',
            'PATCH',
            '/affiliate-campaigns/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
