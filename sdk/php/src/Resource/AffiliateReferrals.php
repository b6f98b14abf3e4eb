<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * People that affiliates referred.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAffiliateReferralsParams from Types
 * @phpstan-import-type AffiliateReferral from Types
 * @phpstan-import-type CreateAffiliateReferralParams from Types
 * @phpstan-import-type CreateAffiliateReferralResponse from Types
 * @phpstan-import-type OneAffiliateReferral from Types
 */
final class AffiliateReferrals
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List referrals, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Filter by status; several separated by commas
     * - `source`: Filter by source; several separated by commas
     * - `affiliate_id`: The partner (`aff_…`)
     * - `email`: The exact email address, case-insensitive
     * - `created_after`: Only those created at this time or later
     * - `created_before`: Only those created before this time
     *
     * @param ListAffiliateReferralsParams $params
     * @param Options $options
     *
     * @return Page<AffiliateReferral>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'affiliateReferrals.list',
            'GET',
            '/affiliate-referrals',
            query: ['limit', 'cursor', 'status', 'source', 'affiliate_id', 'email', 'created_after', 'created_before'],
            pages: 'data',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Create a referral.
     *
     * Fields of `$params`:
     * - `affiliate_id`: The partner's id (`aff_…`); either this or `token` is required
     * - `token`: The token of a link of the partner
     * - `email` (required): The person's email address
     * - `processor_customer_id`: The payment processor's customer id; assigns later payments to the referral
     * - `sub_id`: A tag for the partner's reports
     *
     * @param CreateAffiliateReferralParams $params
     * @param Options $options
     *
     * @return CreateAffiliateReferralResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'affiliateReferrals.create',
            'POST',
            '/affiliate-referrals',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get a referral.
     *
     * @param string $id The referral's id (`ref_…`)
     * @param Options $options
     *
     * @return OneAffiliateReferral
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliateReferrals.get',
            'GET',
            '/affiliate-referrals/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
