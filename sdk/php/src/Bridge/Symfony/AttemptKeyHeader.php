<?php

declare(strict_types=1);

namespace Postrider\Bridge\Symfony;

use Symfony\Component\Mime\Header\UnstructuredHeader;

/**
 * Keeps the idempotency key of a message that is tried again, see `KeepsIdempotencyKey`. It belongs to the message object
 * only: it has no text, so that no other transport sends it.
 *
 * @internal
 */
final class AttemptKeyHeader extends UnstructuredHeader
{
    public const NAME = 'X-Postrider-Attempt-Key';

    public function __construct()
    {
        parent::__construct(self::NAME, bin2hex(random_bytes(16)));
    }

    public function getBodyAsString(): string
    {
        return '';
    }
}
