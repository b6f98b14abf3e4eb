<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Emails that were sent or are waiting.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type SendEmailParams from Types
 * @phpstan-import-type Sent from Types
 * @phpstan-import-type SendBatchParams from Types
 * @phpstan-import-type SendBatchResponse from Types
 * @phpstan-import-type ListEmailsParams from Types
 * @phpstan-import-type Email from Types
 * @phpstan-import-type GetEmailMetricsParams from Types
 * @phpstan-import-type GetEmailMetricsResponse from Types
 * @phpstan-import-type GetEmailResponse from Types
 * @phpstan-import-type UpdateEmailParams from Types
 * @phpstan-import-type UpdateEmailResponse from Types
 * @phpstan-import-type CancelEmailResponse from Types
 * @phpstan-import-type ResendEmailParams from Types
 * @phpstan-import-type TestEventParams from Types
 * @phpstan-import-type TestEventResponse from Types
 */
final class Emails
{
    /** Events of an email. */
    public readonly EmailsEvents $events;
    /** Delivery attempts of an email. */
    public readonly EmailsAttempts $attempts;
    /** Attachments of an email. */
    public readonly EmailsAttachments $attachments;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->events = new EmailsEvents($client);
        $this->attempts = new EmailsAttempts($client);
        $this->attachments = new EmailsAttachments($client);
    }

    /**
     * Send an email.
     *
     * Fields of `$params`:
     * - `from`: The author: `Ada <ada@example.com>`; its domain must be verified
     * - `to` (required): Recipients
     * - `cc`: Recipients of a copy
     * - `bcc`: Recipients of a blind copy
     * - `reply_to`: Addresses for replies (also `replyTo`)
     * - `subject`: The subject
     * - `html`: The HTML body (also `htmlBody`, `html_body`)
     * - `text`: The plain-text body (also `textBody`, `text_body`, `plain_body`)
     * - `headers`: Custom headers; headers that control transport are rejected
     * - `tags`: Stored with the email and sent along with its events
     * - `attachments`: The attachments
     * - `category`: The category
     * - `scheduled_at`: When to send the email; attachments are not supported (also `scheduledAt`)
     * - `expires_in`: Lifetime in seconds: the email is sent with priority and fails after this time
     * - `on_suppressed`: If some recipients are suppressed: `skip` sends to the others, `fail` rejects the email
     * - `unsubscribe`: Managed unsubscribe (RFC 8058)
     * - `template`: A published template: its alias, its id (`tpl_…`), or an object. It provides the bodies, and the
     *   subject, author, reply addresses and category if they are omitted (also `template_id`, `templateId`,
     *   `template_alias`, `templateAlias`)
     * - `variables`: The template's variables by name (also `template_data`, `templateData`, `data_variables`,
     *   `dataVariables`, `dynamic_template_data`)
     *
     * @param SendEmailParams $params
     * @param Options $options
     *
     * @return Sent
     */
    public function send(array $params, array $options = []): array
    {
        $operation = new Operation(
            'emails.send',
            'POST',
            '/emails',
            maps: ['headers', 'tags', 'variables'],
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Send up to 100 emails in one request.
     *
     * @param SendBatchParams $params
     * @param Options $options
     *
     * @return SendBatchResponse
     */
    public function sendBatch(array $params, array $options = []): array
    {
        $operation = new Operation(
            'emails.sendBatch',
            'POST',
            '/emails/batch',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List emails, newest first; all given filters must match.
     *
     * Fields of `$params`:
     * - `limit`: Maximum number of entries. With filters a page may be shorter, or empty, while `has_more` is true: a
     *   request reads a bounded number of emails. Continue with `next_cursor`
     * - `cursor`: `next_cursor` of the previous page; repeat the same filters
     * - `status`: Filter by status; several separated by commas
     * - `to`: Filter by recipient address in `to`, `cc` or `bcc`; several separated by commas
     * - `from`: Filter by sender address; several separated by commas
     * - `tag`: Filter by tag, `name:value`; if repeated, all must match
     * - `category`: Filter by category; several separated by commas
     * - `template`: Filter by template, by id or by the alias used when sending; several separated by commas
     * - `domain_id`: Filter by sending domain (`dom_…`); several separated by commas
     * - `q`: Words in the subject; all must match, in any order, case-insensitive
     * - `created_after`: Only emails accepted after this time
     * - `created_before`: Only emails accepted before this time
     *
     * @param ListEmailsParams $params
     * @param Options $options
     *
     * @return Page<Email>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'emails.list',
            'GET',
            '/emails',
            query: ['limit', 'cursor', 'status', 'to', 'from', 'tag', 'category', 'template', 'domain_id', 'q', 'created_after', 'created_before'],
            repeated: ['tag'],
            pages: 'emails',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get email metrics by hour or day, optionally by dimension.
     *
     * Fields of `$params`:
     * - `from`: Start: a timestamp, or a date in UTC. The first period is the one that contains it. Default: 30 days
     *   before `to` (with `hour`: one day)
     * - `to`: End, exclusive. Default: now, including the current period
     * - `granularity`: Length of a period: at most 92 days with `hour`, three years with `day`. Hours and days are in UTC;
     *   counts are stored for two years
     * - `dimensions`: Group by sending domain, by tag (`name:value`), by template alias, by the provider of the recipient's
     *   mail host (known from the first attempt on, so `sent` is not counted by provider), or by category. With
     *   several dimensions, each has its own rows. At most 100 values per hour are counted apart, the others
     *   together as `(other)`: other domains, other tags and so on. With a filter, pairs of category and domain
     *   are the values, so that `category` can be `(other)` too: email of the domain whose category was not
     *   counted apart. The category of email that was counted before counts had categories is `(unknown)`
     * - `domain`: Count the email of this sending domain only. With a filter, `dimensions` can be `domain` and `category`
     * - `category`: Count the email of this category only, alone or together with `domain`
     * - `metrics`: Counters to return, and `delivery_time`: how long deliveries took; all if omitted
     *
     * @param GetEmailMetricsParams $params
     * @param Options $options
     *
     * @return GetEmailMetricsResponse
     */
    public function metrics(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'emails.metrics',
            'GET',
            '/emails/metrics',
            query: ['from', 'to', 'granularity', 'dimensions', 'domain', 'category', 'metrics'],
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get an email.
     *
     * @param string $id The email's id (`msg_…`)
     * @param Options $options
     *
     * @return GetEmailResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'emails.get',
            'GET',
            '/emails/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Reschedule or cancel a scheduled email.
     *
     * Fields of `$params`:
     * - `scheduled_at`: The new time to send the email
     * - `cancel`: Cancels the email; must be true
     *
     * @param string $id The email's id (`msg_…`)
     * @param UpdateEmailParams $params
     * @param Options $options
     *
     * @return UpdateEmailResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'emails.update',
            'PATCH',
            '/emails/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Cancel a scheduled email.
     *
     * @param string $id The email's id (`msg_…`)
     * @param Options $options
     *
     * @return CancelEmailResponse
     */
    public function cancel(string $id, array $options = []): array
    {
        $operation = new Operation(
            'emails.cancel',
            'POST',
            '/emails/{id}/cancel',
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Resend a stored email, with its attachments on request.
     *
     * Fields of `$params`:
     * - `attachments`: Whether the new email also has the attachments; without them, the response has the warning
     *   `attachments_omitted`
     *
     * @param string $id The email's id (`msg_…`)
     * @param ResendEmailParams $params
     * @param Options $options
     *
     * @return Sent
     */
    public function resend(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'emails.resend',
            'POST',
            '/emails/{id}/resend',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Send a test event to webhooks.
     *
     * Fields of `$params`:
     * - `event` (required): The event name
     * - `email_id`: The email that the event is about (`msg_…`)
     * - `deliver`: Whether to send it to subscribed endpoints; defaults to true
     *
     * @param TestEventParams $params
     * @param Options $options
     *
     * @return TestEventResponse
     */
    public function testEvent(array $params, array $options = []): array
    {
        $operation = new Operation(
            'emails.testEvent',
            'POST',
            '/emails/test',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get the message as it was sent.
     *
     * @param string $id The email's id (`msg_…`)
     * @param Options $options
     *
     * @return string the bytes of message/rfc822
     */
    public function raw(string $id, array $options = []): string
    {
        $operation = new Operation(
            'emails.raw',
            'GET',
            '/emails/{id}/raw',
            accept: 'message/rfc822',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
