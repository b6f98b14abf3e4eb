<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The server has a fault, or is overloaded. Retries did not help. */
class ServerException extends ApiException
{
}
