<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** The signature of a webhook is missing or wrong: answer 401 and do not use the payload. */
class SignatureException extends PostriderException
{
}
