<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Affiliates of the program.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAffiliatesParams from Types
 * @phpstan-import-type Affiliate from Types
 * @phpstan-import-type CreateAffiliateParams from Types
 * @phpstan-import-type CreateAffiliateResponse from Types
 * @phpstan-import-type OneAffiliate from Types
 * @phpstan-import-type UpdateAffiliateParams from Types
 * @phpstan-import-type UpdateAffiliateResponse from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type ApproveAffiliateParams from Types
 * @phpstan-import-type ApproveAffiliateResponse from Types
 * @phpstan-import-type RejectAffiliateParams from Types
 * @phpstan-import-type RejectAffiliateResponse from Types
 * @phpstan-import-type SuspendAffiliateParams from Types
 * @phpstan-import-type SuspendAffiliateResponse from Types
 * @phpstan-import-type CreateAffiliateLoginLinkResponse from Types
 */
final class Affiliates
{
    /** Links of an affiliate. */
    public readonly AffiliatesLinks $links;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->links = new AffiliatesLinks($client);
    }

    /**
     * List partners, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Filter by status; several separated by commas
     * - `campaign_id`: The campaign, by id (`cmp_…`) or name
     * - `email`: The exact email address, case-insensitive
     *
     * @param ListAffiliatesParams $params
     * @param Options $options
     *
     * @return Page<Affiliate>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'affiliates.list',
            'GET',
            '/affiliates',
            query: ['limit', 'cursor', 'status', 'campaign_id', 'email'],
            pages: 'data',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Add a partner.
     *
     * Fields of `$params`:
     * - `email` (required): The person's email address
     * - `first_name`: The given name
     * - `last_name`: The family name
     * - `company`: The company
     * - `website`: The website; `https://` is optional
     * - `country`: Two letters (ISO 3166-1)
     * - `campaign_id`: The campaign, by id (`cmp_…`) or name
     * - `tags`: Tags for the owner's use
     * - `notes`: Private notes
     * - `token`: The token of the partner's link; derived from the name if omitted
     * - `status`: The initial status; defaults to `active`
     * - `paypal_email`: The address for PayPal payouts
     * - `send_invite`: Whether to notify the partner by email; defaults to true
     *
     * @param CreateAffiliateParams $params
     * @param Options $options
     *
     * @return CreateAffiliateResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'affiliates.create',
            'POST',
            '/affiliates',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get a partner with all its links.
     *
     * @param string $id The partner's id (`aff_…`)
     * @param Options $options
     *
     * @return OneAffiliate
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliates.get',
            'GET',
            '/affiliates/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Update a partner.
     *
     * Fields of `$params`:
     * - `first_name`: The given name
     * - `last_name`: The family name
     * - `company`: The company
     * - `website`: The website; `https://` is optional
     * - `country`: Two letters (ISO 3166-1)
     * - `campaign_id`: The campaign, by id (`cmp_…`) or name
     * - `tags`: Tags for the owner's use
     * - `notes`: Private notes
     * - `parent_affiliate_id`: The partner that recruited this one (`aff_…`)
     * - `postback_url`: The URL that receives the partner's own events
     * - `email_opt_out`: Whether the partner has opted out of email, except security email and email it requests
     * - `commission_override`: The partner's own rate; takes precedence over the campaign's
     * - `token`: The new token of the primary link; the old one stops working
     *
     * @param string $id The partner's id (`aff_…`)
     * @param UpdateAffiliateParams $params
     * @param Options $options
     *
     * @return UpdateAffiliateResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'affiliates.update',
            'PATCH',
            '/affiliates/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Delete a partner that has never been paid.
     *
     * @param string $id The partner's id (`aff_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliates.delete',
            'DELETE',
            '/affiliates/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Approve a partner.
     *
     * Fields of `$params`:
     * - `send_email`: Whether to notify the partner by email; defaults to true
     *
     * @param string $id The partner's id (`aff_…`)
     * @param ApproveAffiliateParams $params
     * @param Options $options
     *
     * @return ApproveAffiliateResponse
     */
    public function approve(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'affiliates.approve',
            'POST',
            '/affiliates/{id}/approve',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Reject a partner.
     *
     * Fields of `$params`:
     * - `reason`: The reason, as free text
     * - `send_email`: Whether to notify the partner by email; defaults to true
     *
     * @param string $id The partner's id (`aff_…`)
     * @param RejectAffiliateParams $params
     * @param Options $options
     *
     * @return RejectAffiliateResponse
     */
    public function reject(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'affiliates.reject',
            'POST',
            '/affiliates/{id}/reject',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Suspend a partner: its links stop redirecting and its payouts stop.
     *
     * Fields of `$params`:
     * - `reason`: The reason, as free text
     *
     * @param string $id The partner's id (`aff_…`)
     * @param SuspendAffiliateParams $params
     * @param Options $options
     *
     * @return SuspendAffiliateResponse
     */
    public function suspend(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'affiliates.suspend',
            'POST',
            '/affiliates/{id}/suspend',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Create a one-time link that signs a partner in to the portal; it expires after a minute.
     *
     * @param string $id The partner's id (`aff_…`)
     * @param Options $options
     *
     * @return CreateAffiliateLoginLinkResponse
     */
    public function createLoginLink(string $id, array $options = []): array
    {
        $operation = new Operation(
            'affiliates.createLoginLink',
            'POST',
            '/affiliates/{id}/login-link',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
