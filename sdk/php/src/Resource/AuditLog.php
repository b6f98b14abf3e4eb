<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * What credentials and users did.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAuditLogParams from Types
 * @phpstan-import-type AuditEntry from Types
 */
final class AuditLog
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List what credentials and users did in the last 90 days, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `api_key_id`: Filter by API key
     * - `grant_id`: Filter by the grant of an app
     * - `user_id`: Filter by user
     * - `operation`: Filter by operation, like `delete_domain`
     * - `object_id`: Filter by the id of the object, or of the approval
     * - `created_after`: Only entries after this time
     * - `created_before`: Only entries before this time
     *
     * @param ListAuditLogParams $params
     * @param Options $options
     *
     * @return Page<AuditEntry>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'auditLog.list',
            'GET',
            '/audit-log',
            query: ['limit', 'cursor', 'api_key_id', 'grant_id', 'user_id', 'operation', 'object_id', 'created_after', 'created_before'],
            pages: 'entries',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }
}
