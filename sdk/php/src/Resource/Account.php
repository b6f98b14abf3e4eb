<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * The account that the API key belongs to.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type Account from Types
 */
final class Account
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Get the account, its limits and its usage.
     *
     * @param Options $options
     *
     * @return Account
     */
    public function get(array $options = []): array
    {
        $operation = new Operation(
            'account.get',
            'GET',
            '/account',
            retry: true,
        );

        return $this->client->call($operation, [], [], $options);
    }
}
