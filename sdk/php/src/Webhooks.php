<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\ConfigurationException;
use Postrider\Exception\SignatureException;
use Postrider\Exception\TimestampException;

/** Verifies the webhooks that the server sends. */
final class Webhooks
{
    /**
     * Verifies a request and returns its event.
     *
     * @param string                                   $payload   the body as it came, not parsed
     * @param array<string, string|list<string|null>>  $headers   of the request, or `$_SERVER`
     * @param string|list<string>                      $secret    `whsec_…` of the endpoint; several while one is replaced
     * @param int                                      $tolerance seconds that the signature's time may differ from now
     * @param ?int                                     $now       Unix time; null: now
     *
     * @throws SignatureException     no signature is right: answer 401
     * @throws ConfigurationException no secret is given
     */
    public static function constructEvent(
        string $payload,
        array $headers,
        #[\SensitiveParameter]
        string|array $secret,
        int $tolerance = 300,
        ?int $now = null,
    ): WebhookEvent {
        $secrets = array_values(array_filter(array_map(trim(...), array_filter((array) $secret, is_string(...))), static fn (string $one): bool => $one !== ''));
        if ($secrets === []) {
            throw new ConfigurationException('The webhook secret is missing: it was shown when the webhook was made.');
        }
        $headers = self::named($headers);
        $times = [];
        foreach (self::signatures($headers) as [$time, $signature, $id]) {
            foreach ($secrets as $one) {
                $expected = $id === null ? self::hex($payload, $time, $one) : self::base64($payload, $time, $id, $one);
                if ($expected !== null && hash_equals($expected, $signature)) {
                    $times[] = (int) $time;
                }
            }
        }
        if ($times === []) {
            $sent = isset($headers['service-signature']) || isset($headers['webhook-signature']);
            throw new SignatureException($sent
                ? 'The signature is wrong: use the secret of this endpoint, and the body exactly as it came.'
                : 'The request has no signature: neither `Service-Signature` nor `webhook-signature`.');
        }
        $now ??= time();
        if (min(array_map(static fn (int $time): int => abs($now - $time), $times)) > $tolerance) {
            throw new TimestampException(sprintf(
                'The webhook was signed at %s and the time here is %s: more than %d s apart. Check the clock.',
                gmdate('Y-m-d\TH:i:s\Z', $times[0]),
                gmdate('Y-m-d\TH:i:s\Z', $now),
                $tolerance,
            ));
        }
        return WebhookEvent::fromJson($payload)
            ?? throw new SignatureException('The signature is right, but the body is no event.');
    }

    /**
     * Signs a payload as the server does, for tests of webhook handlers.
     *
     * @return array<string, string>
     */
    public static function generateTestHeader(
        string $payload,
        #[\SensitiveParameter]
        string $secret,
        ?int $timestamp = null,
        string $id = 'evt_test',
    ): array {
        $time = (string) ($timestamp ?? time());

        return [
            'Service-Signature' => "t=$time,v1=" . self::hex($payload, $time, $secret),
            'webhook-id' => $id,
            'webhook-timestamp' => $time,
            'webhook-signature' => 'v1,' . (self::base64($payload, $time, $id, $secret)
                ?? throw new ConfigurationException('The secret must be `whsec_` and base64.')),
        ];
    }

    /**
     * All signatures of both families.
     *
     * @param array<string, string> $headers
     *
     * @return \Generator<int, array{string, string, ?string}> time, signature, and the id in the second family
     */
    private static function signatures(array $headers): \Generator
    {
        $pairs = explode(',', $headers['service-signature'] ?? '');
        $time = preg_replace('/^\s*t=/', '', (string) current(preg_grep('/^\s*t=\d{1,12}\s*$/D', $pairs) ?: ['']));
        foreach (preg_grep('/^\s*v1=/', $pairs) ?: [] as $pair) {
            yield [trim((string) $time), substr(trim($pair), 3), null];
        }
        $time = $headers['webhook-timestamp'] ?? '';
        preg_match_all('~(?<![^\s,])v1,([A-Za-z0-9+/=]+)~', $headers['webhook-signature'] ?? '', $found);
        foreach (preg_match('/^\d{1,12}$/D', $time) === 1 ? $found[1] : [] as $signature) {
            yield [$time, $signature, $headers['webhook-id'] ?? ''];
        }
    }

    private static function hex(string $payload, string $time, #[\SensitiveParameter] string $secret): string
    {
        return hash_hmac('sha256', "$time.$payload", $secret);
    }

    private static function base64(
        string $payload,
        string $time,
        string $id,
        #[\SensitiveParameter]
        string $secret,
    ): ?string {
        $key = str_starts_with($secret, 'whsec_') ? base64_decode(substr($secret, 6), true) : false;

        return \is_string($key) && $key !== ''
            ? base64_encode(hash_hmac('sha256', "$id.$time.$payload", $key, true))
            : null;
    }

    /**
     * Headers by name in lower case. The values of one that occurs several times are joined by commas (RFC 9110, 5.2).
     *
     * @param array<mixed> $headers
     *
     * @return array<string, string>
     */
    private static function named(array $headers): array
    {
        $named = [];
        foreach ($headers as $name => $value) {
            $name = preg_replace('/^http-/', '', str_replace('_', '-', strtolower((string) $name)));
            $values = array_map(static fn (mixed $one): string => trim((string) $one), array_filter(\is_array($value) ? $value : [$value], is_scalar(...)));
            $named[$name] = implode(', ', [...(isset($named[$name]) ? [$named[$name]] : []), ...$values]);
        }

        return $named;
    }
}
