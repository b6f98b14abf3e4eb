<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\CancelledException;
use Postrider\Exception\ConnectionException;
use Postrider\Exception\TimeoutException;
use Postrider\Exception\UnexpectedResponseException;

/** Sends requests by curl and keeps connections open for the next ones. */
final class CurlTransport implements Transport
{
    private const HEADERS_MAX = 256 * 1024;

    private ?\CurlMultiHandle $connections = null;
    private int $process = 0;

    /** @param ?string $caFile certificates of the authorities to trust, in PEM; null for the system's */
    public function __construct(private readonly ?string $caFile = null)
    {
    }

    public function send(#[\SensitiveParameter] Request $request, float $timeout, ?callable $cancelled = null): Response
    {
        $head = new Response(0);
        $limit = self::ANSWER_MAX;
        $body = '';
        foreach ($this->exchange($request, $timeout, null, $cancelled) as $part) {
            if ($part instanceof Response) {
                $head = $part;
                $limit = $head->status >= 400 ? self::ERROR_MAX : self::answerMax();
                continue;
            }
            $body .= $part;
            if (\strlen($body) <= $limit) {
                continue;
            }
            if ($head->status < 400) {
                throw UnexpectedResponseException::tooLarge($head, $limit);
            }
            $body = substr($body, 0, $limit);
            break;
        }

        return new Response($head->status, $head->headers, $body);
    }

    /**
     * Yields the head of the answer, then pieces of its body as they arrive.
     *
     * @param ?float                  $timeout seconds until the answer must be complete
     * @param ?float                  $silence seconds without any byte after which the connection counts as lost
     * @param (callable(): bool)|null $cancelled
     *
     * @return \Generator<int, Response|string>
     */
    public function exchange(
        #[\SensitiveParameter]
        Request $request,
        ?float $timeout,
        ?float $silence = null,
        ?callable $cancelled = null,
    ): \Generator {
        if ($this->connections === null || $this->process !== getmypid()) {
            // A connection must not be shared with the parent process.
            $this->connections = curl_multi_init();
            curl_multi_setopt($this->connections, CURLMOPT_MAXCONNECTS, 8);
            $this->process = (int) getmypid();
        }
        $incoming = new class () {
            public int $status = 0;
            /** @var array<string, string> */
            public array $headers = [];
            public int $headerBytes = 0;
            public bool $complete = false;
            public string $body = '';
            public float $heardAt = 0.0;
        };
        $start = $incoming->heardAt = hrtime(true) / 1e9;
        $handle = $this->handle($request, $incoming, $timeout);
        $yielded = false;
        curl_multi_add_handle($this->connections, $handle);
        try {
            do {
                curl_multi_exec($this->connections, $running);
                $done = curl_multi_info_read($this->connections);
                if ($incoming->complete && !$yielded) {
                    $yielded = true;
                    yield new Response($incoming->status, $incoming->headers);
                }
                if ($incoming->body !== '') {
                    $piece = $incoming->body;
                    $incoming->body = '';
                    yield $piece;
                }
                if ($done !== false) {
                    break;
                }
                if ($cancelled !== null && $cancelled()) {
                    throw new CancelledException('The call was cancelled.');
                }
                $now = hrtime(true) / 1e9;
                if ($timeout !== null && $now - $start >= $timeout) {
                    throw self::timeout($timeout, $yielded);
                }
                if ($silence !== null && $now - $incoming->heardAt >= $silence) {
                    throw new ConnectionException('The server sent nothing for ' . $silence . ' s.', 'reset');
                }
                if (curl_multi_select($this->connections, $cancelled === null ? 0.25 : 0.02) === -1) {
                    usleep(1000);
                }
            } while (true);
            $number = $done['result'];
            if ($number === CURLE_OPERATION_TIMEDOUT && $timeout !== null) {
                throw self::timeout($timeout, $yielded);
            }
            if ($number !== CURLE_OK && $incoming->complete) {
                throw UnexpectedResponseException::truncated(
                    new Response($incoming->status, $incoming->headers),
                    curl_strerror($number) ?? '',
                );
            }
            if ($number !== CURLE_OK) {
                $reason = curl_error($handle) ?: (curl_strerror($number) ?? '');
                throw ConnectionException::ofCurl($number, $reason, $request->url);
            }
        } finally {
            curl_multi_remove_handle($this->connections, $handle);
        }
    }

    private function handle(#[\SensitiveParameter] Request $request, object $incoming, ?float $timeout): \CurlHandle
    {
        $fields = ['Expect:'];
        foreach ($request->headers as $name => $value) {
            $fields[] = $name . ': ' . $value;
        }
        $handle = curl_init();
        curl_setopt_array($handle, [
            CURLOPT_URL => $request->url,
            CURLOPT_CUSTOMREQUEST => $request->method,
            CURLOPT_HTTPHEADER => $fields,
            CURLOPT_PATH_AS_IS => true,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_FOLLOWLOCATION => false,
            // What a proxy answers to CONNECT is not the server's answer.
            CURLOPT_SUPPRESS_CONNECT_HEADERS => true,
            CURLOPT_NOSIGNAL => true,
            CURLOPT_TCP_NODELAY => true,
            CURLOPT_ACCEPT_ENCODING => '',
            // Curl repeats a request on a new connection if a kept one is closed; some requests must not be repeated.
            CURLOPT_FRESH_CONNECT => !$request->repeatable,
            CURLOPT_CONNECTTIMEOUT_MS => (int) max(1, ($timeout ?? 30.0) * 1000),
            CURLOPT_TIMEOUT_MS => $timeout === null ? 0 : (int) max(1, $timeout * 1000),
            CURLOPT_HEADERFUNCTION => static function ($_, string $line) use ($incoming): int {
                $incoming->headerBytes += \strlen($line);
                $incoming->heardAt = hrtime(true) / 1e9;
                if (preg_match('~^HTTP/[\d.]+ (\d{3})~', $line, $found) === 1) {
                    $incoming->status = (int) $found[1];
                    $incoming->headers = [];
                } elseif (trim($line) === '') {
                    $incoming->complete = $incoming->status >= 200;
                } elseif (!$incoming->complete && str_contains($line, ':')) {
                    [$name, $value] = explode(':', $line, 2);
                    $name = strtolower(trim($name));
                    $earlier = isset($incoming->headers[$name]) ? $incoming->headers[$name] . ', ' : '';
                    $incoming->headers[$name] = $earlier . trim($value);
                }

                return $incoming->headerBytes > self::HEADERS_MAX ? -1 : \strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($_, string $bytes) use ($incoming): int {
                $incoming->heardAt = hrtime(true) / 1e9;
                $incoming->body .= $bytes;

                return \strlen($bytes);
            },
        ]);
        if ($request->body !== null) {
            curl_setopt($handle, CURLOPT_POSTFIELDS, $request->body);
        }
        if (RequestBuilder::isLocal((string) parse_url($request->url, PHP_URL_HOST))) {
            curl_setopt($handle, CURLOPT_PROXY, ''); // A proxy reaches another machine, and would read the API key.
        }
        if ($this->caFile !== null) {
            curl_setopt($handle, CURLOPT_CAINFO, $this->caFile);
        }

        return $handle;
    }

    private static function timeout(float $seconds, bool $answering): TimeoutException
    {
        $what = $answering ? 'The answer was not complete' : 'The server did not answer';
        $advice = 'Raise `timeout`, or check the server and the network between.';

        return new TimeoutException(sprintf('%s within %.3g s. %s', $what, $seconds, $advice));
    }

    /** A third of the memory that PHP may still use, so that a large answer is an exception and no fatal error. */
    private static function answerMax(): int
    {
        $allowed = ini_parse_quantity((string) ini_get('memory_limit'));
        $free = $allowed <= 0 ? PHP_INT_MAX : max(0, $allowed - memory_get_usage());

        return (int) min(self::ANSWER_MAX, max(self::ERROR_MAX, intdiv($free, 3)));
    }
}
