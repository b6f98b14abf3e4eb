<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The API key is missing, unknown, revoked or expired. */
class AuthenticationException extends ApiException
{
    /** Why, for example `expired`. */
    public readonly ?string $reason;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->reason = \is_string($value = $this->details['reason'] ?? $error['reason'] ?? null) ? $value : null;
    }
}
