<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Received emails.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListReceivedEmailsParams from Types
 * @phpstan-import-type ReceivedEmail from Types
 * @phpstan-import-type GetReceivedEmailParams from Types
 * @phpstan-import-type OneReceivedEmail from Types
 * @phpstan-import-type ReplyToReceivedEmailParams from Types
 * @phpstan-import-type Sent from Types
 * @phpstan-import-type ForwardReceivedEmailParams from Types
 * @phpstan-import-type Done from Types
 */
final class ReceivedEmails
{
    /** Attachments of a received email. */
    public readonly ReceivedEmailsAttachments $attachments;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->attachments = new ReceivedEmailsAttachments($client);
    }

    /**
     * List received emails.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `order`: `desc`: newest first. `asc`: in the order of arrival; the last page has a cursor too, and later
     *   arrivals follow it without gaps
     * - `to`: Envelope recipient; any of several, separated by commas
     * - `from`: Address of the author or of the envelope sender; any of several, separated by commas
     * - `domain_id`: Receiving domain (`dom_…`); any of several, separated by commas
     * - `spam_status`: Spam status; any of several, separated by commas
     * - `received_after`: Only those received after this time
     * - `received_before`: Only those received before this time
     *
     * @param ListReceivedEmailsParams $params
     * @param Options $options
     *
     * @return Page<ReceivedEmail>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'receivedEmails.list',
            'GET',
            '/received-emails',
            query: ['limit', 'cursor', 'order', 'to', 'from', 'domain_id', 'spam_status', 'received_after', 'received_before'],
            pages: 'received_emails',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a received email with its attachments.
     *
     * Fields of `$params`:
     * - `attachments`: `inline`: attachments are included in base64; `none`: only their metadata. Fetch large attachments one
     *   by one
     *
     * @param string $id The received email's id (`inb_…`)
     * @param GetReceivedEmailParams $params
     * @param Options $options
     *
     * @return OneReceivedEmail
     */
    public function get(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'receivedEmails.get',
            'GET',
            '/received-emails/{id}',
            query: ['attachments'],
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Get the raw message of a received email.
     *
     * @param string $id The received email's id (`inb_…`)
     * @param Options $options
     *
     * @return string the bytes of message/rfc822
     */
    public function raw(string $id, array $options = []): string
    {
        $operation = new Operation(
            'receivedEmails.raw',
            'GET',
            '/received-emails/{id}/raw',
            accept: 'message/rfc822',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Reply to a received email.
     *
     * Fields of `$params`:
     * - `html`: The HTML body
     * - `text`: The plain-text body
     *
     * @param string $id The received email's id (`inb_…`)
     * @param ReplyToReceivedEmailParams $params
     * @param Options $options
     *
     * @return Sent
     */
    public function reply(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'receivedEmails.reply',
            'POST',
            '/received-emails/{id}/reply',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Forward a received email as an attachment.
     *
     * Fields of `$params`:
     * - `to` (required): Recipients
     * - `text`: Text above the forwarded message
     *
     * @param string $id The received email's id (`inb_…`)
     * @param ForwardReceivedEmailParams $params
     * @param Options $options
     *
     * @return Sent
     */
    public function forward(string $id, array $params, array $options = []): array
    {
        $operation = new Operation(
            'receivedEmails.forward',
            'POST',
            '/received-emails/{id}/forward',
            body: 'application/json',
            idempotent: true,
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Delete a received email and its message.
     *
     * @param string $id The received email's id (`inb_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'receivedEmails.delete',
            'DELETE',
            '/received-emails/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
