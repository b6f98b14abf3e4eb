<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * What affiliates earned.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAffiliateCommissionsParams from Types
 * @phpstan-import-type AffiliateCommission from Types
 * @phpstan-import-type AffiliateCommissionDetail from Types
 * @phpstan-import-type ReverseAffiliateCommissionParams from Types
 * @phpstan-import-type ReverseAffiliateCommissionResponse from Types
 */
final class AffiliateCommissions
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List commissions, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Filter by status; several separated by commas
     * - `affiliate_id`: The partner (`aff_…`)
     * - `referral_id`: The referral (`ref_…`)
     * - `payout_id`: The payout (`pay_…`) that the commissions are in
     * - `currency`: Filter by currency; several separated by commas
     * - `created_after`: Only those created at this time or later
     * - `created_before`: Only those created before this time
     *
     * @param ListAffiliateCommissionsParams $params
     * @param Options $options
     *
     * @return Page<AffiliateCommission>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'affiliateCommissions.list',
            'GET',
            '/affiliate-commissions',
            query: ['limit', 'cursor', 'status', 'affiliate_id', 'referral_id', 'payout_id', 'currency', 'created_after', 'created_before'],
            pages: 'data',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a commission.
     *
     * @param string $id The commission's id (`com_…`)
     * @param Options $options
     *
     * @return AffiliateCommissionDetail
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliateCommissions.get',
            'GET',
            '/affiliate-commissions/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Reverse a commission that is neither paid nor in a payout.
     *
     * Fields of `$params`:
     * - `status` (required): Reverses the commission
     * - `reason`: The reason; `fraud` also reverses the recruiting partner's commission
     * - `note`: Your team's note; sent with the event
     *
     * @param string $id The commission's id (`com_…`)
     * @param ReverseAffiliateCommissionParams $params
     * @param Options $options
     *
     * @return ReverseAffiliateCommissionResponse
     */
    public function reverse(string $id, array $params, array $options = []): array
    {
        $operation = new Operation(
            'affiliateCommissions.reverse',
            'PATCH',
            '/affiliate-commissions/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
