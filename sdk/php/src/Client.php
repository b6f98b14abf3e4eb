<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\CancelledException;
use Postrider\Exception\NotFoundException;
use Postrider\Exception\PostriderException;
use Postrider\Exception\SendUnconfirmedException;
use Postrider\Exception\UnexpectedResponseException;

/**
 * The API of a postrider server.
 *
 * @phpstan-type Options array{
 *     idempotency_key?: string, if_match?: string, timeout?: float|int, max_retries?: int,
 *     cancelled?: callable(): bool, headers?: array<string, string>,
 * }
 */
final class Client
{
    use ResourceTree;

    public readonly Dev $dev;
    private readonly RequestBuilder $requests;
    private readonly Transport $transport;
    private ?Response $lastResponse = null;
    /** @var (\Closure(string, string): mixed)|null */
    private readonly ?\Closure $onWarning;

    /**
     * @param ?string                                 $apiKey            null: POSTRIDER_API_KEY of the environment
     * @param ?string                                 $baseUrl           null: POSTRIDER_BASE_URL of the environment
     * @param float                                   $timeout           seconds for a call with all its retries
     * @param bool                                    $allowInsecureHttp accepts `http:` for other hosts than this one
     * @param ?string                                 $caFile            authorities to trust instead of the system's
     * @param ?Transport                              $transport         null: curl
     * @param (callable(string, string): mixed)|null  $onWarning         gets a warning of the API, and the call's name
     */
    public function __construct(
        #[\SensitiveParameter]
        ?string $apiKey = null,
        ?string $baseUrl = null,
        private readonly float $timeout = 30.0,
        private readonly int $maxRetries = 2,
        bool $allowInsecureHttp = false,
        private readonly ?string $caFile = null,
        ?Transport $transport = null,
        ?callable $onWarning = null,
        string $userAgent = '',
        private readonly Clock $clock = new Clock(),
    ) {
        $agent = trim('postrider-php/' . Version::SDK . ' ' . preg_replace('/[^\x20-\x7e]/', '', $userAgent));
        $this->requests = new RequestBuilder($apiKey, $baseUrl, $allowInsecureHttp, $agent);
        $this->transport = $transport ?? new CurlTransport($caFile);
        $this->onWarning = $onWarning === null ? null : $onWarning(...);
        $this->dev = new Dev($this);
        $this->makeResources();
    }

    /** The last answer that came, also one of a failed call, without its body: status, rate limit, request id and headers. */
    public function lastResponse(): ?Response
    {
        return $this->lastResponse;
    }

    /**
     * Calls an operation.
     *
     * @internal Use the resources, for example `$client->emails->send()`.
     *
     * @param list<string>         $path
     * @param array<string, mixed> $params
     * @param array<string, mixed> $options
     *
     * @return array<string, mixed>|string the answer's JSON, or its bytes if it is another media type
     */
    public function call(Operation $operation, array $path = [], array $params = [], array $options = []): array|string
    {
        $request = $this->requests->build($operation, $path, $params, $options);
        $cancelled = $options['cancelled'] ?? null;
        $deadline = $this->clock->monotonic() + (float) ($options['timeout'] ?? $this->timeout);
        $retries = (int) ($options['max_retries'] ?? $this->maxRetries);
        for ($attempt = 0;; ++$attempt) {
            try {
                $left = max(0.001, $deadline - $this->clock->monotonic());
                $response = $this->transport->send($request, $left, $cancelled);
                $this->lastResponse = $this->requests->redact(new Response($response->status, $response->headers));

                return $this->result($operation, $response);
            } catch (PostriderException $failure) {
                if ($attempt >= $retries || !Failure::isRetryable($failure, $operation)) {
                    throw $failure;
                }
                $wait = $this->waitAfter($failure, $attempt);
                if ($this->clock->monotonic() + $wait >= $deadline) {
                    throw $failure;
                }
                $this->pause($wait, $cancelled);
            }
        }
    }

    /**
     * Gets the first page of a list.
     *
     * @internal
     *
     * @param list<string>         $path
     * @param array<string, mixed> $params
     * @param array<string, mixed> $options
     *
     * @return Page<array<string, mixed>>
     */
    public function page(Operation $operation, array $path, array $params, array $options): Page
    {
        $fetch = fn (?string $cursor): array => (array) $this->call(
            $operation,
            $path,
            $cursor === null ? $params : ['cursor' => $cursor] + $params,
            $options,
        );

        return new Page($fetch, $fetch(null), (string) $operation->pages);
    }

    /**
     * Reads a stream of events.
     *
     * @internal Use `$client->webhookEvents->stream()`.
     *
     * @param array<string, mixed> $params
     * @param array<string, mixed> $options
     *
     * @return \Generator<int, WebhookEvent>
     */
    public function stream(Operation $operation, array $params, array $options): \Generator
    {
        $cursor = $params['after'] ?? null;
        unset($params['after']);
        $build = function (?string $cursor) use ($operation, $params, $options): Request {
            $headers = ($cursor === null ? [] : ['Last-Event-ID' => $cursor]) + ($options['headers'] ?? []);

            return $this->requests->build($operation, [], $params, ['headers' => $headers] + $options);
        };
        $stream = new EventStream(new CurlTransport($this->caFile), $build, $this->requests->redact(...), $cursor);
        $cancelled = $options['cancelled'] ?? null;
        for ($attempt = 0;;) {
            $wait = null;
            try {
                foreach ($stream->read($cancelled) as $event) {
                    $attempt = 0;
                    yield $event;
                }
            } catch (PostriderException $failure) {
                $status = isset($failure->response) ? $failure->response->status : 0;
                // Before the first connection it tries as often as a call, so that a wrong base URL is noticed.
                $isHopeless = !$stream->hasConnected && $attempt >= $this->maxRetries;
                if ($isHopeless || ($status < 500 && !Failure::isRetryable($failure, $operation))) {
                    throw $failure;
                }
                $wait = $this->waitAfter($failure, $attempt);
            }
            $this->pause($wait ?? $this->backoff($attempt), $cancelled);
            ++$attempt;
        }
    }

    /** @return array<string, mixed> */
    public function __debugInfo(): array
    {
        return ['timeout' => $this->timeout, 'maxRetries' => $this->maxRetries, 'apiKey' => '[hidden]'];
    }

    /** @return array<string, mixed>|string */
    private function result(Operation $operation, #[\SensitiveParameter] Response $response): array|string
    {
        if ($response->status < 200 || $response->status >= 300) {
            $failure = Failure::of($this->requests->redact($response));
            if ($failure instanceof SendUnconfirmedException) {
                $failure->resolveBy($this->resolve(...));
            }
            throw $failure;
        }
        $held = $response->status === 202 ? ErrorCodes::held($this->requests->redact($response)) : null;
        if ($held !== null) {
            throw $held;
        }
        $type = strtolower($response->header('content-type') ?? '');
        if ($operation->accept !== 'application/json') {
            // A page of a proxy is no raw email and no table; an attachment can be HTML.
            if ($type === '' || (str_starts_with($type, 'text/html') && $response->requestId() === null)) {
                throw UnexpectedResponseException::of($this->requests->redact($response));
            }

            return $response->body;
        }
        $data = json_decode($response->body, true, 256);
        if (!\is_array($data) || ($data !== [] && array_is_list($data))) {
            throw UnexpectedResponseException::of($this->requests->redact($response));
        }
        foreach ($this->onWarning === null ? [] : (array) ($data['warnings'] ?? []) as $warning) {
            try {
                ($this->onWarning)((string) (\is_string($warning) ? $warning : json_encode($warning)), $operation->name);
            } catch (\Throwable $failure) {
                // The call has succeeded: it must not look as if it had failed.
                error_log('postrider: onWarning failed: ' . $failure->getMessage());
            }
        }

        return $data;
    }

    private function waitAfter(PostriderException $failure, int $attempt): float
    {
        $asked = isset($failure->response) ? $failure->response->retryAfter($this->clock->now()) : null;

        return $asked ?? $this->backoff($attempt);
    }

    private function backoff(int $attempt): float
    {
        return $this->clock->random() * min(8.0, 0.5 * 2 ** min($attempt, 10));
    }

    private function pause(float $seconds, ?callable $cancelled): void
    {
        while ($seconds > 0) {
            if ($cancelled !== null && $cancelled()) {
                throw new CancelledException('The call was cancelled.');
            }
            $slice = $cancelled === null ? $seconds : min($seconds, 0.05);
            $this->clock->sleep($slice);
            $seconds -= $slice;
        }
    }

    /** @return array<string, mixed> the email, once it is no longer failed, or at the end of the time */
    private function resolve(string $id, float $timeout): array
    {
        $deadline = $this->clock->monotonic() + $timeout;
        for ($attempt = 0;; ++$attempt) {
            $left = max(0.1, $deadline - $this->clock->monotonic());
            $wait = min(8.0, 0.5 * 2 ** $attempt);
            $isLast = $this->clock->monotonic() + $wait >= $deadline;
            try {
                $email = $this->emails->get($id, options: ['timeout' => min($left, $this->timeout)])['email'] ?? [];
                if ($isLast || ($email['status'] ?? '') !== 'failed') {
                    return $email;
                }
            } catch (NotFoundException $failure) {
                if ($isLast) {
                    throw $failure;
                }
            }
            $this->clock->sleep($wait);
        }
    }
}
