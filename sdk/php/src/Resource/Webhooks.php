<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Webhooks.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateWebhookParams from Types
 * @phpstan-import-type CreateWebhookResponse from Types
 * @phpstan-import-type ListWebhooksParams from Types
 * @phpstan-import-type Webhook from Types
 * @phpstan-import-type OneWebhook from Types
 * @phpstan-import-type UpdateWebhookParams from Types
 * @phpstan-import-type UpdateWebhookResponse from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type RotateWebhookSecretParams from Types
 * @phpstan-import-type RotateWebhookSecretResponse from Types
 * @phpstan-import-type TestWebhookParams from Types
 * @phpstan-import-type TestWebhookResponse from Types
 * @phpstan-import-type ReplayWebhookDeliveriesParams from Types
 * @phpstan-import-type ReplayWebhookDeliveriesResponse from Types
 */
final class Webhooks
{
    /** Deliveries to a webhook. */
    public readonly WebhooksDeliveries $deliveries;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->deliveries = new WebhooksDeliveries($client);
    }

    /**
     * Create a webhook endpoint (its secret is shown once).
     *
     * Fields of `$params`:
     * - `url` (required): URL for deliveries: https, at a public address
     * - `events`: The events to send; empty: all except email.cancelled, domain.verified, domain.degraded,
     *   suppression.created, suppression.deleted, webhook.disabled, which must be named
     * - `enabled`: Whether events are sent; default: true
     * - `description`: Your description
     * - `domain_ids`: Only events of these domains (`dom_…`) are sent; empty: all
     * - `inbound_addresses`: Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
     *   (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events
     *   are not affected
     * - `retry_policy`: `default`: five attempts within five minutes; `extended`: eight within 28 hours
     *
     * @param CreateWebhookParams $params
     * @param Options $options
     *
     * @return CreateWebhookResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.create',
            'POST',
            '/webhooks',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List webhook endpoints, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param ListWebhooksParams $params
     * @param Options $options
     *
     * @return Page<Webhook>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'webhooks.list',
            'GET',
            '/webhooks',
            query: ['limit', 'cursor'],
            pages: 'webhooks',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a webhook endpoint.
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param Options $options
     *
     * @return OneWebhook
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.get',
            'GET',
            '/webhooks/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Update a webhook endpoint.
     *
     * Fields of `$params`:
     * - `url`: URL for deliveries: https, at a public address
     * - `events`: The events to send; empty: all except email.cancelled, domain.verified, domain.degraded,
     *   suppression.created, suppression.deleted, webhook.disabled, which must be named
     * - `enabled`: Whether events are sent; default: true
     * - `description`: Your description
     * - `domain_ids`: Only events of these domains (`dom_…`) are sent; empty: all
     * - `inbound_addresses`: Only mail received for these addresses is sent: an address (`support@example.com`), its sub-addresses
     *   (`support+*@example.com`) or a whole domain (`*@example.com`); empty: all received mail. Other events
     *   are not affected
     * - `retry_policy`: `default`: five attempts within five minutes; `extended`: eight within 28 hours
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param UpdateWebhookParams $params
     * @param Options $options
     *
     * @return UpdateWebhookResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'webhooks.update',
            'PATCH',
            '/webhooks/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Delete a webhook endpoint.
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.delete',
            'DELETE',
            '/webhooks/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Rotate the secret of a webhook endpoint.
     *
     * Fields of `$params`:
     * - `grace_hours`: Hours during which the old secret still signs, in addition to the new one
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param RotateWebhookSecretParams $params
     * @param Options $options
     *
     * @return RotateWebhookSecretResponse
     */
    public function rotateSecret(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'webhooks.rotateSecret',
            'POST',
            '/webhooks/{id}/rotate-secret',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Send a test event to a webhook endpoint.
     *
     * Fields of `$params`:
     * - `event` (required): An event name
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param TestWebhookParams $params
     * @param Options $options
     *
     * @return TestWebhookResponse
     */
    public function test(string $id, array $params, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.test',
            'POST',
            '/webhooks/{id}/test',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Replay deliveries of a time range.
     *
     * Fields of `$params`:
     * - `since` (required): Deliveries created at this time or later
     * - `until`: Deliveries created before this time; default: now
     * - `status`: Deliveries with this status
     * - `events`: Deliveries of these events; default: all
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param ReplayWebhookDeliveriesParams $params
     * @param Options $options
     *
     * @return ReplayWebhookDeliveriesResponse
     */
    public function replay(string $id, array $params, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.replay',
            'POST',
            '/webhooks/{id}/replay',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
