<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Attachments of an email.
 *
 * @phpstan-import-type Options from Client
 */
final class EmailsAttachments
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Get an attachment of an email.
     *
     * @param string $id The email's id (`msg_…`)
     * @param string $attId The attachment's id (`att_0` is the first)
     * @param Options $options
     *
     * @return string the bytes of application/octet-stream
     */
    public function get(string $id, string $attId, array $options = []): string
    {
        $operation = new Operation(
            'emails.attachments.get',
            'GET',
            '/emails/{id}/attachments/{att_id}',
            accept: 'application/octet-stream',
            retry: true,
        );

        return $this->client->call($operation, [$id, $attId], [], $options);
    }
}
