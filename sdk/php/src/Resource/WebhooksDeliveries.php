<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Deliveries to a webhook.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListWebhookDeliveriesParams from Types
 * @phpstan-import-type WebhookDelivery from Types
 * @phpstan-import-type OneWebhookDelivery from Types
 * @phpstan-import-type QueuedWebhookDelivery from Types
 */
final class WebhooksDeliveries
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List deliveries, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Any of these, separated by commas: pending, delivered, failed
     * - `type`: Any of these, separated by commas: email.received, email.sent, email.delivered, email.delivery_delayed,
     *   email.bounced, email.complained, email.opened, email.clicked, email.failed, email.suppressed,
     *   email.scheduled, contact.unsubscribed, automation.started, automation.step_completed,
     *   automation.completed, automation.failed, email.cancelled, domain.verified, domain.degraded,
     *   suppression.created, suppression.deleted, webhook.disabled, affiliate.created, affiliate.approved,
     *   affiliate.updated, referral.created, referral.converted, commission.created, commission.earned,
     *   commission.reversed, commission.paid, payout.created, payout.paid, payout.failed
     * - `created_after`: Only those created after this time
     * - `created_before`: Only those created before this time
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param ListWebhookDeliveriesParams $params
     * @param Options $options
     *
     * @return Page<WebhookDelivery>
     */
    public function list(string $id, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'webhooks.deliveries.list',
            'GET',
            '/webhooks/{id}/deliveries',
            query: ['limit', 'cursor', 'status', 'type', 'created_after', 'created_before'],
            pages: 'deliveries',
            retry: true,
        );

        return $this->client->page($operation, [$id], $params, $options);
    }

    /**
     * Get a delivery with its body and attempts.
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param string $deliveryId The delivery's id (`whd_…`)
     * @param Options $options
     *
     * @return OneWebhookDelivery
     */
    public function get(string $id, string $deliveryId, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.deliveries.get',
            'GET',
            '/webhooks/{id}/deliveries/{delivery_id}',
            retry: true,
        );

        return $this->client->call($operation, [$id, $deliveryId], [], $options);
    }

    /**
     * Replay a delivery.
     *
     * @param string $id The endpoint's id (`whk_…`)
     * @param string $deliveryId The delivery's id (`whd_…`)
     * @param Options $options
     *
     * @return QueuedWebhookDelivery
     */
    public function replay(string $id, string $deliveryId, array $options = []): array
    {
        $operation = new Operation(
            'webhooks.deliveries.replay',
            'POST',
            '/webhooks/{id}/deliveries/{delivery_id}/replay',
        );

        return $this->client->call($operation, [$id, $deliveryId], [], $options);
    }
}
