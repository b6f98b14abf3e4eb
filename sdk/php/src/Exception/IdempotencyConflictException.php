<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The idempotency key was used with another request. A new request needs a new key. */
class IdempotencyConflictException extends ConflictException
{
}
