<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Product events: what people did in your product.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type SendEventParams from Types
 * @phpstan-import-type SendEventResponse from Types
 * @phpstan-import-type ListEventsParams from Types
 * @phpstan-import-type ProductEvent from Types
 * @phpstan-import-type CountEventsParams from Types
 * @phpstan-import-type EventCounts from Types
 * @phpstan-import-type OneProductEvent from Types
 */
final class Events
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Send a product event.
     *
     * Fields of `$params`:
     * - `name`: The event name, like `user.created`. No control characters, no leading or trailing spaces, no name of
     *   an event of the service (`email.delivered`)
     * - `type`: Alias of `name`; one of them is required
     * - `user_id`: The person's user id in your product
     * - `email`: The person's email address
     * - `data`: Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are
     *   stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid`
     *   (or the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`
     * - `dry_run`: Dashboard sessions only: run an automation as a test without sending anything
     * - `test_send`: Dashboard sessions only: run an automation as a test and send its messages
     * - `automation_id`: Dashboard sessions only: the automation to test
     *
     * @param SendEventParams $params
     * @param Options $options
     *
     * @return SendEventResponse
     */
    public function send(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'events.send',
            'POST',
            '/events',
            maps: ['data'],
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List product events, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `name`: Filter by event name
     * - `email`: Filter by email address
     * - `user_id`: Filter by user id
     * - `created_after`: Only events received after this time
     * - `created_before`: Only events received before this time
     *
     * @param ListEventsParams $params
     * @param Options $options
     *
     * @return Page<ProductEvent>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'events.list',
            'GET',
            '/events',
            query: ['limit', 'cursor', 'name', 'email', 'user_id', 'created_after', 'created_before'],
            pages: 'events',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get product event counts by hour or day.
     *
     * Fields of `$params`:
     * - `name`: Filter by event names, separated by commas; all if omitted. `visit` counts visits. At most 1,000 names
     *   per account are counted separately, the others as `(other)`
     * - `from`: Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
     *   before `to` (with `hour`: one day)
     * - `to`: End, exclusive. Default: now, including the current period
     * - `granularity`: Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC;
     *   counts are stored for two years
     *
     * @param CountEventsParams $params
     * @param Options $options
     *
     * @return EventCounts
     */
    public function counts(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'events.counts',
            'GET',
            '/events/counts',
            query: ['name', 'from', 'to', 'granularity'],
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get a product event.
     *
     * @param string $id The event's id (`ae_…`)
     * @param Options $options
     *
     * @return OneProductEvent
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'events.get',
            'GET',
            '/events/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
