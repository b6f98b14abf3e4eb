<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** There is no such object in this account. */
class NotFoundException extends ApiException
{
}
