<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Runs of an automation, each for one person.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListAutomationRunsParams from Types
 * @phpstan-import-type AutomationRun from Types
 * @phpstan-import-type GetAutomationRunResponse from Types
 * @phpstan-import-type CancelAutomationRunResponse from Types
 */
final class AutomationsRuns
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List runs, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Only these values: queued, running, waiting, completed, failed, cancelled; several separated by commas
     * - `email`: Filter by the person's email address
     * - `user_id`: Filter by the person's `user_id` in the product
     *
     * @param string $id The automation's id (`aut_…`)
     * @param ListAutomationRunsParams $params
     * @param Options $options
     *
     * @return Page<AutomationRun>
     */
    public function list(string $id, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'automations.runs.list',
            'GET',
            '/automations/{id}/runs',
            query: ['limit', 'cursor', 'status', 'email', 'user_id'],
            pages: 'runs',
            retry: true,
        );

        return $this->client->page($operation, [$id], $params, $options);
    }

    /**
     * Get a run, step by step.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param string $run The run's id (`run_…`)
     * @param Options $options
     *
     * @return GetAutomationRunResponse
     */
    public function get(string $id, string $run, array $options = []): array
    {
        $operation = new Operation(
            'automations.runs.get',
            'GET',
            '/automations/{id}/runs/{run}',
            retry: true,
        );

        return $this->client->call($operation, [$id, $run], [], $options);
    }

    /**
     * Cancel a run.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param string $run The run's id (`run_…`)
     * @param Options $options
     *
     * @return CancelAutomationRunResponse
     */
    public function cancel(string $id, string $run, array $options = []): array
    {
        $operation = new Operation(
            'automations.runs.cancel',
            'POST',
            '/automations/{id}/runs/{run}/cancel',
        );

        return $this->client->call($operation, [$id, $run], [], $options);
    }
}
