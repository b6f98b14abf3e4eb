<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Conversions.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListConversionsParams from Types
 * @phpstan-import-type Conversion from Types
 */
final class Conversions
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List sign-ups and subscriptions, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `kind`: Filter by kind
     * - `source`: Filter by the measured source of the first visit
     * - `email`: Filter by email address
     * - `user_id`: Filter by user id
     * - `created_after`: Only those whose event was received after this time
     * - `created_before`: Only those whose event was received before this time
     *
     * @param ListConversionsParams $params
     * @param Options $options
     *
     * @return Page<Conversion>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'conversions.list',
            'GET',
            '/conversions',
            query: ['limit', 'cursor', 'kind', 'source', 'email', 'user_id', 'created_after', 'created_before'],
            pages: 'conversions',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }
}
