<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Published versions of an automation.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAutomationVersionsParams from Types
 * @phpstan-import-type AutomationVersion from Types
 */
final class AutomationsVersions
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List versions, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param string $id The automation's id (`aut_…`)
     * @param ListAutomationVersionsParams $params
     * @param Options $options
     *
     * @return Page<AutomationVersion>
     */
    public function list(string $id, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'automations.versions.list',
            'GET',
            '/automations/{id}/versions',
            query: ['limit', 'cursor'],
            pages: 'versions',
            retry: true,
        );

        return $this->client->page($operation, [$id], $params, $options);
    }
}
