<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Requests that wait for a person's approval.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListApprovalsParams from Types
 * @phpstan-import-type Approval from Types
 * @phpstan-import-type GetApprovalResponse from Types
 */
final class Approvals
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List requests that wait for approval and decided ones, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Filter by status
     *
     * @param ListApprovalsParams $params
     * @param Options $options
     *
     * @return Page<Approval>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'approvals.list',
            'GET',
            '/approvals',
            query: ['limit', 'cursor', 'status'],
            pages: 'approvals',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get an approval, with the response once the request was executed.
     *
     * @param string $id The approval's id (`apr_…`)
     * @param Options $options
     *
     * @return GetApprovalResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'approvals.get',
            'GET',
            '/approvals/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
