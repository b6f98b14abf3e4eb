<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The time of a signed webhook is outside of the tolerance. */
class TimestampException extends SignatureException
{
}
