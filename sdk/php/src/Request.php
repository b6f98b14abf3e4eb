<?php

declare(strict_types=1);

namespace Postrider;

/** A request as a transport sends it. Its headers contain the API key: never log or keep it. */
final class Request
{
    /** @param array<string, string> $headers */
    public function __construct(
        public readonly string $method,
        public readonly string $url,
        #[\SensitiveParameter]
        public readonly array $headers,
        public readonly ?string $body = null,
        /** Whether it may be sent twice, for example on a kept connection that turns out to be closed. */
        public readonly bool $repeatable = false,
    ) {
    }

    /** @return array<string, string> */
    public function __debugInfo(): array
    {
        return ['method' => $this->method, 'url' => $this->url];
    }
}
