<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The idempotency key was used with another request. Use a new key for a new request. */
class IdempotencyConflictException extends ConflictException
{
}
