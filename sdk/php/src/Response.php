<?php

declare(strict_types=1);

namespace Postrider;

/** An answer of the server. */
final class Response
{
    /** @param array<string, string> $headers by name in lower case */
    public function __construct(
        public readonly int $status,
        public readonly array $headers = [],
        public readonly string $body = '',
    ) {
    }

    public function header(string $name): ?string
    {
        return $this->headers[strtolower($name)] ?? null;
    }

    public function requestId(): ?string
    {
        return $this->header('x-request-id');
    }

    /**
     * The account's rate limit after the call: calls allowed, calls left, and seconds until all are allowed again.
     *
     * @return array{limit: ?int, remaining: ?int, reset: ?int}
     */
    public function rateLimit(): array
    {
        return [
            'limit' => $this->integer('ratelimit-limit'),
            'remaining' => $this->integer('ratelimit-remaining'),
            'reset' => $this->integer('ratelimit-reset'),
        ];
    }

    public function integer(string $name): ?int
    {
        return is_numeric($this->header($name)) ? (int) $this->header($name) : null;
    }

    /** The wait that the server asks for, in seconds. */
    public function retryAfter(int $now): ?float
    {
        $value = $this->header('retry-after');
        if ($value === null || is_numeric($value)) {
            return $value === null ? null : max(0.0, (float) $value);
        }
        $until = strtotime($value);
        // The server's own date makes the wait independent of the local clock.
        $from = strtotime($this->header('date') ?? '') ?: $now;

        return $until === false ? null : (float) max(0, $until - $from);
    }
}
