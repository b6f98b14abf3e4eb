<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The API key, the domain or the account may not do this. */
class PermissionException extends ApiException
{
}
