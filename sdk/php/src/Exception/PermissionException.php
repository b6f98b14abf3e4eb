<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** The API key, the domain or the account must not do this. */
class PermissionException extends ApiException
{
}
