<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The object is in another state, was changed meanwhile, or exists already. */
class ConflictException extends ApiException
{
}
