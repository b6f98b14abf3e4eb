<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The account makes too many calls at once, and the retries did not help. */
class RateLimitException extends ApiException
{
    public readonly ?int $limit;
    public readonly ?int $remaining;
    /** Seconds until all calls of the limit are allowed again. */
    public readonly ?int $reset;
    /** Seconds to wait before the next call. */
    public readonly ?float $retryAfter;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        ['limit' => $this->limit, 'remaining' => $this->remaining, 'reset' => $this->reset] = $response->rateLimit();
        $this->retryAfter = $response->retryAfter(time());
    }
}
