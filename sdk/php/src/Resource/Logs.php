<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Log of API requests.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListLogsParams from Types
 * @phpstan-import-type LoggedRequest from Types
 * @phpstan-import-type GetLogResponse from Types
 */
final class Logs
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List API requests of the last 30 days, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `method`: Filter by method, like `POST`
     * - `status`: Filter by status or status class, like `404` or `4xx`
     * - `path`: Filter by path prefix, like `/emails`
     * - `operation`: Filter by operation, like `send_email`
     * - `api_key_id`: Filter by API key (`key_…`)
     * - `user_id`: Filter by the user (`user_…`) whose session made the request
     * - `created_after`: Only requests received after this time
     * - `created_before`: Only requests received before this time
     *
     * @param ListLogsParams $params
     * @param Options $options
     *
     * @return Page<LoggedRequest>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'logs.list',
            'GET',
            '/logs',
            query: ['limit', 'cursor', 'method', 'status', 'path', 'operation', 'api_key_id', 'user_id', 'created_after', 'created_before'],
            pages: 'logs',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get an API request.
     *
     * @param string $id The request's id (`req_…`)
     * @param Options $options
     *
     * @return GetLogResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'logs.get',
            'GET',
            '/logs/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
