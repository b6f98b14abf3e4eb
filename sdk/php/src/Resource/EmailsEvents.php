<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Events of an email.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListEmailEventsParams from Types
 * @phpstan-import-type EmailEvent from Types
 */
final class EmailsEvents
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List the events of an email, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param string $id The email's id (`msg_…`)
     * @param ListEmailEventsParams $params
     * @param Options $options
     *
     * @return Page<EmailEvent>
     */
    public function list(string $id, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'emails.events.list',
            'GET',
            '/emails/{id}/events',
            query: ['limit', 'cursor'],
            pages: 'events',
            retry: true,
        );

        return $this->client->page($operation, [$id], $params, $options);
    }
}
