<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Links of an affiliate.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAffiliateLinksParams from Types
 * @phpstan-import-type AffiliateLink from Types
 * @phpstan-import-type CreateAffiliateLinkParams from Types
 * @phpstan-import-type CreateAffiliateLinkResponse from Types
 * @phpstan-import-type Done from Types
 */
final class AffiliatesLinks
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List a partner's links, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param string $id The partner's id (`aff_…`)
     * @param ListAffiliateLinksParams $params
     * @param Options $options
     *
     * @return Page<AffiliateLink>
     */
    public function list(string $id, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'affiliates.links.list',
            'GET',
            '/affiliates/{id}/links',
            query: ['limit', 'cursor'],
            pages: 'data',
            retry: true,
        );

        return $this->client->page($operation, [$id], $params, $options);
    }

    /**
     * Create a link for a partner.
     *
     * Fields of `$params`:
     * - `token` (required): The token of the link; it is not changed
     * - `destination_url`: The destination: a path or a URL on the website
     * - `label`: A label for your own use
     *
     * @param string $id The partner's id (`aff_…`)
     * @param CreateAffiliateLinkParams $params
     * @param Options $options
     *
     * @return CreateAffiliateLinkResponse
     */
    public function create(string $id, array $params, array $options = []): array
    {
        $operation = new Operation(
            'affiliates.links.create',
            'POST',
            '/affiliates/{id}/links',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Delete a link other than the primary one.
     *
     * @param string $id The partner's id (`aff_…`)
     * @param string $linkId The link's id (`afl_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, string $linkId, array $options = []): array
    {
        $operation = new Operation(
            'affiliates.links.delete',
            'DELETE',
            '/affiliates/{id}/links/{link_id}',
            retry: true,
        );

        return $this->client->call($operation, [$id, $linkId], [], $options);
    }
}
