<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Payments to affiliates.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAffiliatePayoutsParams from Types
 * @phpstan-import-type AffiliatePayout from Types
 * @phpstan-import-type OneAffiliatePayout from Types
 * @phpstan-import-type MarkAffiliatePayoutPaidParams from Types
 * @phpstan-import-type MarkAffiliatePayoutPaidResponse from Types
 */
final class AffiliatePayouts
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List payouts, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Filter by status; several separated by commas
     * - `affiliate_id`: The partner (`aff_…`)
     * - `run_id`: The payout run (`prn_…`)
     *
     * @param ListAffiliatePayoutsParams $params
     * @param Options $options
     *
     * @return Page<AffiliatePayout>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'affiliatePayouts.list',
            'GET',
            '/affiliate-payouts',
            query: ['limit', 'cursor', 'status', 'affiliate_id', 'run_id'],
            pages: 'data',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a payout.
     *
     * @param string $id The payout's id (`pay_…`)
     * @param Options $options
     *
     * @return OneAffiliatePayout
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliatePayouts.get',
            'GET',
            '/affiliate-payouts/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Mark a manual payout as paid, with its proof.
     *
     * Fields of `$params`:
     * - `reference` (required): Reference of the payment, as proof
     *
     * @param string $id The payout's id (`pay_…`)
     * @param MarkAffiliatePayoutPaidParams $params
     * @param Options $options
     *
     * @return MarkAffiliatePayoutPaidResponse
     */
    public function markPaid(string $id, array $params, array $options = []): array
    {
        $operation = new Operation(
            'affiliatePayouts.markPaid',
            'POST',
            '/affiliate-payouts/{id}/mark-paid',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
