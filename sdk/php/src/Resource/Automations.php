<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Automations: emails and steps that a product event starts.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateAutomationParams from Types
 * @phpstan-import-type CreateAutomationResponse from Types
 * @phpstan-import-type ListAutomationsParams from Types
 * @phpstan-import-type Automation from Types
 * @phpstan-import-type GetAutomationResponse from Types
 * @phpstan-import-type UpdateAutomationParams from Types
 * @phpstan-import-type UpdateAutomationResponse from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type DuplicateAutomationParams from Types
 * @phpstan-import-type DuplicateAutomationResponse from Types
 * @phpstan-import-type DryRunAutomationParams from Types
 * @phpstan-import-type DryRunAutomationResponse from Types
 * @phpstan-import-type ReplayAutomationParams from Types
 * @phpstan-import-type ReplayAutomationResponse from Types
 * @phpstan-import-type CountAutomationStepsParams from Types
 * @phpstan-import-type CountAutomationStepsResponse from Types
 */
final class Automations
{
    /** Published versions of an automation. */
    public readonly AutomationsVersions $versions;
    /** Runs of an automation, each for one person. */
    public readonly AutomationsRuns $runs;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->versions = new AutomationsVersions($client);
        $this->runs = new AutomationsRuns($client);
    }

    /**
     * Create an automation, as a draft.
     *
     * Fields of `$params`:
     * - `name` (required): The name
     * - `steps` (required): The steps of a run, in order
     *
     * @param CreateAutomationParams $params
     * @param Options $options
     *
     * @return CreateAutomationResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'automations.create',
            'POST',
            '/automations',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List automations, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Only these values: draft, active, paused, archived; several separated by commas
     *
     * @param ListAutomationsParams $params
     * @param Options $options
     *
     * @return Page<Automation>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'automations.list',
            'GET',
            '/automations',
            query: ['limit', 'cursor', 'status'],
            pages: 'automations',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get an automation.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param Options $options
     *
     * @return GetAutomationResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'automations.get',
            'GET',
            '/automations/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Activate, pause, archive or edit an automation, or cancel its runs.
     *
     * Fields of `$params`:
     * - `action`: The action to perform
     * - `name`: The name
     * - `steps`: The steps of a run, in order
     *
     * @param string $id The automation's id (`aut_…`)
     * @param UpdateAutomationParams $params
     * @param Options $options
     *
     * @return UpdateAutomationResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'automations.update',
            'POST',
            '/automations/{id}',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Activate an automation, so that events start runs.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param Options $options
     *
     * @return UpdateAutomationResponse
     */
    public function activate(string $id, array $options = []): array
    {
        $operation = new Operation(
            'automations.activate',
            'POST',
            '/automations/{id}',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], ['action' => 'activate'], $options);
    }

    /**
     * Pause an automation and its runs.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param Options $options
     *
     * @return UpdateAutomationResponse
     */
    public function pause(string $id, array $options = []): array
    {
        $operation = new Operation(
            'automations.pause',
            'POST',
            '/automations/{id}',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], ['action' => 'pause'], $options);
    }

    /**
     * Archive an automation and cancel its runs.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param Options $options
     *
     * @return UpdateAutomationResponse
     */
    public function archive(string $id, array $options = []): array
    {
        $operation = new Operation(
            'automations.archive',
            'POST',
            '/automations/{id}',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], ['action' => 'archive'], $options);
    }

    /**
     * Cancel all runs of an automation.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param Options $options
     *
     * @return UpdateAutomationResponse
     */
    public function cancelRuns(string $id, array $options = []): array
    {
        $operation = new Operation(
            'automations.cancelRuns',
            'POST',
            '/automations/{id}',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], ['action' => 'cancel_runs'], $options);
    }

    /**
     * Delete an automation and its runs.
     *
     * @param string $id The automation's id (`aut_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'automations.delete',
            'DELETE',
            '/automations/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Copy an automation into a new draft.
     *
     * Fields of `$params`:
     * - `name`: The name; derived from the original's if absent
     *
     * @param string $id The automation's id (`aut_…`)
     * @param DuplicateAutomationParams $params
     * @param Options $options
     *
     * @return DuplicateAutomationResponse
     */
    public function duplicate(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'automations.duplicate',
            'POST',
            '/automations/{id}/duplicate',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Run an automation as a test, without sending anything.
     *
     * Fields of `$params`:
     * - `steps`: The steps; the stored ones if omitted
     * - `user_id`: The person's user id in your product
     * - `email`: The person's email address
     * - `data`: Event data, at most 65536 bytes and 32 levels. Automations receive it unchanged; credentials in it are
     *   stored as `REDACTED`. For sign-ups and subscriptions: `id`, `visitor_id`, `gclid`, `gbraid`, `wbraid`
     *   (or the cookie `rnl_ad`), `came_from`, `signup_method`, `invited`, `internal`, `value`, `currency`
     *
     * @param string $id The automation's id (`aut_…`)
     * @param DryRunAutomationParams $params
     * @param Options $options
     *
     * @return DryRunAutomationResponse
     */
    public function dryRun(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'automations.dryRun',
            'POST',
            '/automations/{id}/dry-run',
            maps: ['data'],
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Run past events as a test, without sending anything.
     *
     * Fields of `$params`:
     * - `steps`: The steps; the stored ones if omitted
     * - `limit`: The number of past events, newest first; default: 100
     *
     * @param string $id The automation's id (`aut_…`)
     * @param ReplayAutomationParams $params
     * @param Options $options
     *
     * @return ReplayAutomationResponse
     */
    public function replay(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'automations.replay',
            'POST',
            '/automations/{id}/replay',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Get the number of runs at each step.
     *
     * Fields of `$params`:
     * - `version`: The version whose steps are counted; the current one if omitted
     *
     * @param string $id The automation's id (`aut_…`)
     * @param CountAutomationStepsParams $params
     * @param Options $options
     *
     * @return CountAutomationStepsResponse
     */
    public function stepCounts(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'automations.stepCounts',
            'GET',
            '/automations/{id}/step-counts',
            query: ['version'],
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
