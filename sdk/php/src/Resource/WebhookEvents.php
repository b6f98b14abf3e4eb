<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;
use Postrider\WebhookEvent;

/**
 * The stream of webhook events.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListWebhookEventsParams from Types
 * @phpstan-import-type StreamEvent from Types
 */
final class WebhookEvents
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List events, or stream them as server-sent events.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `types`: Any of these, separated by commas: email.received, email.sent, email.delivered, email.delivery_delayed,
     *   email.bounced, email.complained, email.opened, email.clicked, email.failed, email.suppressed,
     *   email.scheduled, contact.unsubscribed, automation.started, automation.step_completed,
     *   automation.completed, automation.failed, email.cancelled, domain.verified, domain.degraded,
     *   suppression.created, suppression.deleted, webhook.disabled, affiliate.created, affiliate.approved,
     *   affiliate.updated, referral.created, referral.converted, commission.created, commission.earned,
     *   commission.reversed, commission.paid, payout.created, payout.paid, payout.failed
     * - `order`: `asc`: oldest first, and the last page has a cursor too, for polling; `desc`: newest first
     *
     * @param ListWebhookEventsParams $params
     * @param Options $options
     *
     * @return Page<StreamEvent>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'webhookEvents.list',
            'GET',
            '/webhook-events',
            query: ['limit', 'cursor', 'types', 'order'],
            pages: 'events',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Reads events as they happen, for ever: lost connections are made again, and no event is left out. `after` is the
     * cursor of the last event that was read before.
     *
     * @param array{types?: string|list<string>, after?: string} $params
     * @param Options $options
     *
     * @return \Generator<int, WebhookEvent>
     */
    public function stream(array $params = [], array $options = []): \Generator
    {
        $operation = new Operation(
            'webhookEvents.stream',
            'GET',
            '/webhook-events',
            query: ['types'],
            accept: 'text/event-stream',
            retry: true,
        );

        return $this->client->stream($operation, $params, $options);
    }
}
