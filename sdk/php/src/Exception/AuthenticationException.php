<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The API key is unknown, revoked or expired. */
class AuthenticationException extends ApiException
{
    public readonly ?string $reason;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->reason = $this->text('reason');
    }
}
