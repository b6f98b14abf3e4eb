<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Claims on domains that another account has.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateDomainClaimParams from Types
 * @phpstan-import-type CreateDomainClaimResponse from Types
 * @phpstan-import-type ListDomainClaimsParams from Types
 * @phpstan-import-type DomainClaim from Types
 * @phpstan-import-type OneDomainClaim from Types
 */
final class DomainsClaims
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Claim a domain of another account.
     *
     * Fields of `$params`:
     * - `name` (required): The domain
     *
     * @param CreateDomainClaimParams $params
     * @param Options $options
     *
     * @return CreateDomainClaimResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'domains.claims.create',
            'POST',
            '/domains/claims',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List claims, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param ListDomainClaimsParams $params
     * @param Options $options
     *
     * @return Page<DomainClaim>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'domains.claims.list',
            'GET',
            '/domains/claims',
            query: ['limit', 'cursor'],
            pages: 'claims',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a claim.
     *
     * @param string $id The claim's id (`clm_…`)
     * @param Options $options
     *
     * @return OneDomainClaim
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'domains.claims.get',
            'GET',
            '/domains/claims/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Cancel a claim.
     *
     * @param string $id The claim's id (`clm_…`)
     * @param Options $options
     *
     * @return OneDomainClaim
     */
    public function cancel(string $id, array $options = []): array
    {
        $operation = new Operation(
            'domains.claims.cancel',
            'POST',
            '/domains/claims/{id}/cancel',
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Verify a claim's record now.
     *
     * @param string $id The claim's id (`clm_…`)
     * @param Options $options
     *
     * @return OneDomainClaim
     */
    public function verify(string $id, array $options = []): array
    {
        $operation = new Operation(
            'domains.claims.verify',
            'POST',
            '/domains/claims/{id}/verify',
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
