<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

/** A service behind the server refused or failed, for example a DNS provider. */
class UpstreamException extends ApiException
{
}
