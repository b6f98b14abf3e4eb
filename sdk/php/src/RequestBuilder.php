<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\ConfigurationException;

/**
 * Makes requests of calls, and holds the API key so that no dump, trace or serialized object shows it.
 *
 * @internal
 */
final class RequestBuilder
{
    /** Headers that say where a request ends and how the connection is used. */
    private const FRAMING = '/^(connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$/Di';

    private readonly \SensitiveParameterValue $apiKey;
    private readonly string $baseUrl;

    public function __construct(
        #[\SensitiveParameter]
        ?string $apiKey,
        ?string $baseUrl,
        bool $allowInsecureHttp,
        private readonly string $userAgent,
    ) {
        $apiKey ??= self::environment('POSTRIDER_API_KEY');
        if ($apiKey === null || $apiKey === '') {
            throw new ConfigurationException('The API key is missing: pass it, or set POSTRIDER_API_KEY.');
        }
        if (preg_match('/^[\x21-\x7e]+$/D', $apiKey) !== 1) {
            throw new ConfigurationException('The API key has characters that no key has, for example a space or a line '
                . 'break: copy it again.');
        }
        $this->apiKey = new \SensitiveParameterValue($apiKey);
        $this->baseUrl = self::checkedUrl($baseUrl ?? self::environment('POSTRIDER_BASE_URL'), $allowInsecureHttp);
    }

    /**
     * @param list<string>         $path
     * @param array<string, mixed> $params
     * @param array<string, mixed> $options
     */
    public function build(Operation $operation, array $path, array $params, array $options): Request
    {
        $headers = $this->headersOf($operation, $options);
        $url = $this->baseUrl . self::filledPath($operation->path, $path);
        $query = [];
        foreach (array_intersect_key($params, array_flip($operation->query)) as $name => $value) {
            $isRepeated = \is_array($value) && \in_array($name, $operation->repeated, true);
            foreach ($isRepeated ? $value : ($value === null ? [] : [$value]) as $one) {
                $query[] = $name . '=' . rawurlencode(self::queryText($one));
            }
        }
        $url .= $query === [] ? '' : '?' . implode('&', $query);
        $body = null;
        if ($operation->body !== null) {
            $body = self::bodyOf($operation, array_diff_key($params, array_flip($operation->query)));
        }

        return new Request($operation->method, $url, $headers, $body, $operation->retry);
    }

    /**
     * The caller's headers with the SDK's own, which replace them; a `User-Agent` is appended.
     *
     * @param array<string, mixed> $options
     *
     * @return array<string, string>
     */
    private function headersOf(Operation $operation, array $options): array
    {
        $given = array_map(strval(...), array_change_key_case($options['headers'] ?? []));
        $key = $options['idempotency_key'] ?? $given['idempotency-key'] ?? ($operation->idempotent ? self::uuid() : null);
        $match = $options['if_match'] ?? $given['if-match'] ?? null;
        $headers = array_filter([
            'Authorization' => 'Bearer ' . $this->apiKey->getValue(),
            'Service-Version' => Version::SERVICE,
            'User-Agent' => trim($this->userAgent . ' ' . ($given['user-agent'] ?? '')),
            'Accept' => $operation->accept === 'application/json' ? 'application/json'
                : "$operation->accept, application/json;q=0.5",
            'Content-Type' => $operation->body,
            'Idempotency-Key' => $key,
            'If-Match' => $match,
        ], static fn (mixed $one): bool => $one !== null);
        $headers += array_diff_key($given, array_change_key_case($headers), ['accept-encoding' => '', 'content-type' => '']);
        foreach ($headers as $name => $value) {
            if (preg_match(self::FRAMING, (string) $name) === 1) {
                throw new ConfigurationException("The header $name cannot be set: the SDK writes it itself.");
            }
            if (preg_match('/^[!#$%&\'*+.^_`|~0-9A-Za-z-]+$/D', (string) $name) !== 1) {
                throw new ConfigurationException('`headers` has a name that no header can have.');
            }
            if (preg_match('/[\x00-\x08\x0a-\x1f\x7f]/', (string) $value) === 1) {
                throw new ConfigurationException("The header $name must not contain control characters.");
            }
        }

        return $headers;
    }

    /** Replaces the API key, for example in the page of a proxy that repeats the request. */
    public function redact(#[\SensitiveParameter] Response $response): Response
    {
        $headers = array_map($this->redactText(...), $response->headers);

        return new Response($response->status, $headers, $this->redactText($response->body));
    }

    public function redactText(#[\SensitiveParameter] string $text): string
    {
        return str_replace((string) $this->apiKey->getValue(), '[API key]', $text);
    }

    /** @param array<string, mixed> $params */
    private static function bodyOf(Operation $operation, array $params): string
    {
        if ($operation->body !== 'application/json') {
            return (string) ($params['content'] ?? '');
        }
        foreach ($operation->maps as $name) {
            if (($params[$name] ?? null) === []) {
                $params[$name] = new \stdClass();
            }
        }
        $flags = JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_PRESERVE_ZERO_FRACTION;
        try {
            return $params === [] ? '{}' : json_encode(self::withTimes($params), $flags);
        } catch (\JsonException $failure) {
            throw new ConfigurationException('The params cannot be written as JSON: ' . $failure->getMessage()
                . '. Texts must be UTF-8, files base64.');
        }
    }

    /** Replaces times by their texts, also within arrays. */
    private static function withTimes(mixed $value): mixed
    {
        if ($value instanceof \DateTimeInterface) {
            return $value->format('Y-m-d\TH:i:s.vP');
        }

        return \is_array($value) ? array_map(self::withTimes(...), $value) : $value;
    }

    private static function queryText(mixed $value): string
    {
        return match (true) {
            \is_bool($value) => $value ? 'true' : 'false',
            \is_array($value) => implode(',', array_map(self::queryText(...), $value)),
            $value instanceof \DateTimeInterface => $value->format('Y-m-d\TH:i:s.vP'),
            $value instanceof \BackedEnum => (string) $value->value,
            default => (string) $value,
        };
    }

    /** @param list<string> $values */
    private static function filledPath(string $path, array $values): string
    {
        $next = 0;

        return (string) preg_replace_callback('/\{(\w+)\}/', static function (array $found) use ($values, &$next): string {
            $value = $values[$next++] ?? '';
            if ($value === '' || $value === '.' || $value === '..') {
                throw new ConfigurationException("`$found[1]` is empty or no identifier.");
            }

            return rawurlencode($value);
        }, $path);
    }

    private static function environment(string $name): ?string
    {
        $value = $_SERVER[$name] ?? getenv($name);

        return \is_string($value) && $value !== '' ? $value : null;
    }

    private static function checkedUrl(?string $url, bool $allowInsecureHttp): string
    {
        if ($url === null || $url === '') {
            throw new ConfigurationException('The base URL is missing: pass it, or set POSTRIDER_BASE_URL, for example '
                . 'https://mail.example.com.');
        }
        $parts = preg_match('/[\x00-\x20\x7f]/', $url) === 1 ? false : parse_url($url);
        $scheme = strtolower($parts['scheme'] ?? '');
        $host = strtolower(trim($parts['host'] ?? '', '[]'));
        if ($parts === false || !\in_array($scheme, ['http', 'https'], true) || $host === ''
            || isset($parts['user']) || isset($parts['query']) || isset($parts['fragment'])) {
            throw new ConfigurationException('The base URL must be like https://mail.example.com, without a user, '
                . 'a query or a fragment.');
        }
        if ($scheme === 'http' && !self::isLocal($host) && !$allowInsecureHttp) {
            throw new ConfigurationException('The base URL must start with https:, because the API key would be sent '
                . 'unencrypted. In a trusted network pass `allowInsecureHttp: true`.');
        }

        return rtrim($url, '/');
    }

    /** Whether a host is this machine. */
    public static function isLocal(string $host): bool
    {
        return preg_match('/^(localhost|\[?::1\]?|127(\.\d{1,3}){3})$/Di', $host) === 1;
    }

    private static function uuid(): string
    {
        $bytes = random_bytes(16);
        $bytes[6] = \chr(\ord($bytes[6]) & 0x0f | 0x40);
        $bytes[8] = \chr(\ord($bytes[8]) & 0x3f | 0x80);

        return vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    }
}
