<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The deadline of the call passed. The server may have carried it out. */
class TimeoutException extends PostriderException
{
}
