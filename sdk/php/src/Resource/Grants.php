<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * What users have allowed apps to do.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListGrantsParams from Types
 * @phpstan-import-type Grant from Types
 * @phpstan-import-type GetGrantResponse from Types
 * @phpstan-import-type Done from Types
 */
final class Grants
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List what users have allowed apps to do, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param ListGrantsParams $params
     * @param Options $options
     *
     * @return Page<Grant>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'grants.list',
            'GET',
            '/grants',
            query: ['limit', 'cursor'],
            pages: 'grants',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a grant.
     *
     * @param string $id The grant's id (`grant_…`)
     * @param Options $options
     *
     * @return GetGrantResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'grants.get',
            'GET',
            '/grants/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Revoke a grant: its app loses access at once.
     *
     * @param string $id The grant's id (`grant_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function revoke(string $id, array $options = []): array
    {
        $operation = new Operation(
            'grants.revoke',
            'DELETE',
            '/grants/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
