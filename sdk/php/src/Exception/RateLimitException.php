<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The account makes too many calls at once, and retries did not help. */
class RateLimitException extends ApiException
{
    /** Calls that are allowed. */
    public readonly ?int $limit;
    /** Calls that are left. */
    public readonly ?int $remaining;
    /** Seconds until all calls are allowed again. */
    public readonly ?int $reset;
    /** Time to wait before the next call. */
    public readonly ?float $retryAfter;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->limit = $response->integer('ratelimit-limit');
        $this->remaining = $response->integer('ratelimit-remaining');
        $this->reset = $response->integer('ratelimit-reset');
        $this->retryAfter = $response->retryAfter(time());
    }
}
