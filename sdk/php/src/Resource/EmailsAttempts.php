<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Delivery attempts of an email.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListEmailAttemptsParams from Types
 * @phpstan-import-type Attempt from Types
 */
final class EmailsAttempts
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List the delivery attempts of an email, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param string $id The email's id (`msg_…`)
     * @param ListEmailAttemptsParams $params
     * @param Options $options
     *
     * @return Page<Attempt>
     */
    public function list(string $id, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'emails.attempts.list',
            'GET',
            '/emails/{id}/attempts',
            query: ['limit', 'cursor'],
            pages: 'attempts',
            retry: true,
        );

        return $this->client->page($operation, [$id], $params, $options);
    }
}
