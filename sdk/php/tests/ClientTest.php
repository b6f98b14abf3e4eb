<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Client;
use Postrider\Exception as Failures;
use Postrider\Operation;
use Postrider\Response;

final class ClientTest extends TestCase
{
    private const KEY = 'rnl_secretsecretsecretsecret';
    private const SENT = ['id' => 'msg_1', 'status' => 'sent'];
    private const EMAIL = ['from' => 'ada@example.com', 'to' => 'grace@example.net', 'subject' => 'Hello', 'text' => 'Hi'];

    private FakeTransport $transport;
    private FakeClock $clock;

    private function client(Response|Failures\PostriderException ...$answers): Client
    {
        $this->transport = new FakeTransport(array_values($answers));
        $this->clock = new FakeClock();

        return new Client(self::KEY, 'https://mail.example.com/', transport: $this->transport, clock: $this->clock);
    }

    private function failure(\Closure $call): Failures\PostriderException
    {
        try {
            $call();
        } catch (Failures\PostriderException $failure) {
            return $failure;
        }
        self::fail('nothing was thrown');
    }

    public function testRequest(): void
    {
        $client = $this->client(FakeTransport::json(200, self::SENT, ['x-request-id' => 'req_1', 'ratelimit-limit' => '10']));
        $sent = $client->emails->send(self::EMAIL + ['variables' => []], ['idempotency_key' => 'order-1']);
        self::assertSame(self::SENT, $sent);
        $request = $this->transport->requests[0];
        self::assertSame('POST https://mail.example.com/emails', "$request->method $request->url");
        self::assertSame('{"from":"ada@example.com","to":"grace@example.net","subject":"Hello","text":"Hi","variables":{}}', $request->body);
        self::assertSame('Bearer ' . self::KEY, $request->headers['Authorization']);
        self::assertSame('order-1', $request->headers['Idempotency-Key']);
        self::assertMatchesRegularExpression('~^postrider-php/\d~', $request->headers['User-Agent']);
        self::assertSame('req_1', $client->lastResponse()?->requestId());
        self::assertSame(10, $client->lastResponse()?->rateLimit()['limit']);
    }

    public function testTheLastResponseHasNeitherBodyNorKey(): void
    {
        $client = $this->client(FakeTransport::json(200, self::SENT, ['x-echo' => 'Bearer ' . self::KEY]));
        $client->emails->send(self::EMAIL);
        $last = $client->lastResponse();
        self::assertSame([200, 'Bearer [API key]', ''], [$last?->status, $last?->header('x-echo'), $last?->body]);
    }

    public function testQueryPathAndTimes(): void
    {
        $client = $this->client(FakeTransport::json(200, ['emails' => []]), FakeTransport::json(200, ['email' => []]));
        $client->emails->list(['status' => ['sent', 'bounced'], 'tag' => ['a:b', 'c:d'], 'q' => 'a b&c', 'created_after' => new \DateTimeImmutable('2026-01-01T00:00:00Z')]);
        $client->emails->get('msg/1 ?');
        [$list, $get] = $this->transport->requests;
        self::assertSame('https://mail.example.com/emails?status=sent%2Cbounced&tag=a%3Ab&tag=c%3Ad&q=a%20b%26c&created_after=2026-01-01T00%3A00%3A00.000%2B00%3A00', $list->url);
        self::assertSame('https://mail.example.com/emails/msg%2F1%20%3F', $get->url);
        self::assertArrayNotHasKey('Idempotency-Key', $get->headers);
    }

    public function testRetriesKeepTheIdempotencyKey(): void
    {
        $client = $this->client(
            new Failures\ConnectionException('lost', 'reset'),
            FakeTransport::error(503, 'service_unavailable', headers: ['retry-after' => '3']),
            FakeTransport::json(200, self::SENT),
        );
        $client->emails->send(self::EMAIL);
        $keys = array_map(static fn ($request): string => $request->headers['Idempotency-Key'], $this->transport->requests);
        self::assertCount(3, $keys);
        self::assertCount(1, array_unique($keys));
        self::assertMatchesRegularExpression('/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/', $keys[0]);
        self::assertSame([0.25, 3.0], $this->clock->sleeps);
    }

    public function testRetryAfterAsADate(): void
    {
        $headers = ['date' => 'Thu, 01 Jan 2026 10:00:00 GMT', 'retry-after' => 'Thu, 01 Jan 2026 10:00:05 GMT'];
        $client = $this->client(FakeTransport::error(429, 'rate_limit_exceeded', headers: $headers), FakeTransport::json(200, []));
        $client->account->get();
        self::assertSame([5.0], $this->clock->sleeps);
    }

    public function testAWaitBeyondTheDeadlineFailsAtOnce(): void
    {
        $client = $this->client(FakeTransport::error(429, 'rate_limit_exceeded', headers: ['retry-after' => '31']));
        $failure = $this->failure(fn () => $client->account->get());
        self::assertInstanceOf(Failures\RateLimitException::class, $failure);
        self::assertSame(31.0, $failure->retryAfter);
        self::assertSame([], $this->clock->sleeps);
    }

    /** @dataProvider retries */
    public function testWhatIsRetried(string $kind, Response|Failures\PostriderException $answer, bool $retried): void
    {
        $operation = new Operation('x', 'POST', '/x', retry: $kind === 'repeatable');
        $client = $this->client($answer, FakeTransport::json(200, ['done' => true]));
        $retried || $this->failure(fn () => $client->call($operation));
        $retried && self::assertSame(['done' => true], $client->call($operation));
        self::assertCount($retried ? 2 : 1, $this->transport->requests);
    }

    public static function retries(): iterable
    {
        $reset = new Failures\ConnectionException('', 'reset');
        $refused = new Failures\ConnectionException('', 'refused', true);
        $certificate = new Failures\ConnectionException('', 'tls', true, true);
        $page = new Response(502, ['content-type' => 'text/html'], '<html>');
        yield 'reset' => ['repeatable', $reset, true];
        yield 'reset of another' => ['other', $reset, false];
        yield 'refused' => ['other', $refused, true];
        yield 'certificate' => ['repeatable', $certificate, false];
        yield 'page' => ['repeatable', $page, true];
        yield 'page for another' => ['other', $page, false];
        yield '408' => ['repeatable', FakeTransport::error(408, 'request_timeout'), true];
        yield '500' => ['repeatable', FakeTransport::error(500, 'internal_error'), true];
        yield '500 of another' => ['other', FakeTransport::error(500, 'internal_error'), false];
        yield '502' => ['repeatable', FakeTransport::error(502, 'mail_server_error'), true];
        yield 'unavailable of another' => ['other', FakeTransport::error(503, 'service_unavailable'), true];
        yield 'rate limit of another' => ['other', FakeTransport::error(429, 'rate_limit_exceeded'), true];
        yield 'in progress' => ['repeatable', FakeTransport::error(409, 'idempotency_in_progress'), true];
        yield 'conflict' => ['repeatable', FakeTransport::error(409, 'idempotency_conflict'), false];
        yield 'plan limit' => ['repeatable', FakeTransport::error(429, 'plan_limit'), false];
        yield '422' => ['repeatable', FakeTransport::error(422, 'validation_error'), false];
        yield '504' => ['repeatable', FakeTransport::error(504, 'send_unconfirmed'), false];
        yield 'timeout' => ['repeatable', new Failures\TimeoutException(), false];
    }

    public function testErrorsHaveTheirFields(): void
    {
        $details = ['fields' => ['from' => 'is required']];
        $client = $this->client(
            FakeTransport::error(400, 'validation_error', ['details' => $details, 'doc_url' => 'https://d/e'], ['x-request-id' => 'req_9']),
            FakeTransport::error(422, 'validation_error', ['details' => ['category_unsubscribed' => ['a@x'], 'category' => 'newsletter', 'email_id' => 'msg_2']]),
            FakeTransport::error(429, 'plan_limit', ['upgrade_url' => '/plan', 'details' => ['limit' => 'daily', 'used' => 100, 'cap' => 100]]),
            FakeTransport::error(418, 'teapot'),
        );
        $send = fn () => $client->emails->send(self::EMAIL);
        $failure = $this->failure($send);
        self::assertInstanceOf(Failures\ValidationException::class, $failure);
        self::assertSame(['from' => 'is required'], $failure->fields);
        self::assertSame([400, 'validation_error', 'req_9', 'https://d/e'], [$failure->status, $failure->errorCode, $failure->requestId, $failure->docUrl]);
        $failure = $this->failure($send);
        self::assertInstanceOf(Failures\SuppressedRecipientException::class, $failure);
        self::assertSame([['a@x'], 'newsletter', 'msg_2'], [$failure->suppressed, $failure->category, $failure->emailId]);
        $failure = $this->failure($send);
        self::assertInstanceOf(Failures\PlanLimitException::class, $failure);
        self::assertSame(['/plan', 'daily', 100], [$failure->upgradeUrl, $failure->limit, $failure->cap]);
        self::assertSame(Failures\ApiException::class, $this->failure($send)::class);
    }

    public function testResolve(): void
    {
        $unconfirmed = ['email' => ['id' => 'msg_3', 'status' => 'failed', 'last_event' => 'email.failed']];
        $client = $this->client(
            FakeTransport::error(504, 'send_unconfirmed', ['details' => ['email_id' => 'msg_3']]),
            FakeTransport::error(404, 'not_found'),
            FakeTransport::json(200, $unconfirmed),
            FakeTransport::json(200, ['email' => ['id' => 'msg_3', 'status' => 'sent']]),
        );
        $failure = $this->failure(fn () => $client->emails->send(self::EMAIL));
        self::assertInstanceOf(Failures\SendUnconfirmedException::class, $failure);
        self::assertSame('sent', $failure->resolve()['status']);
        self::assertSame('https://mail.example.com/emails/msg_3', $this->transport->requests[2]->url);
        $client = $this->client(FakeTransport::error(504, 'send_unconfirmed', ['details' => ['email_id' => 'msg_3']]), ...array_fill(0, 9, FakeTransport::json(200, $unconfirmed)));
        $failure = $this->failure(fn () => $client->emails->send(self::EMAIL));
        self::assertSame('failed', $failure->resolve(5.0)['status']);
    }

    public function testPages(): void
    {
        $page = static fn (array $ids, ?string $next): Response => FakeTransport::json(200, [
            'emails' => array_map(static fn (string $id): array => ['id' => $id], $ids),
            'has_more' => $next !== null,
            'next_cursor' => $next,
        ]);
        $client = $this->client($page(['a', 'b'], 'n1'), $page([], 'n2'), $page(['c'], null));
        $emails = $client->emails->list(['limit' => 2]);
        self::assertTrue($emails['has_more']);
        self::assertCount(2, $emails->items());
        self::assertSame(['a', 'b', 'c'], array_column(iterator_to_array($emails), 'id'));
        self::assertStringContainsString('cursor=n2', $this->transport->requests[2]->url);
        $client = $this->client($page(['a'], 'n1'), $page(['a'], 'n1'));
        $failure = $this->failure(fn () => iterator_to_array($client->emails->list()));
        self::assertInstanceOf(Failures\UnexpectedResponseException::class, $failure);
    }

    public function testCursorsThatGoInACircle(): void
    {
        $page = static fn (string $next): Response => FakeTransport::json(200, ['emails' => [['id' => 'msg_1']], 'has_more' => true, 'next_cursor' => $next]);
        $list = $this->client(...array_map($page, ['a', 'b', 'a', 'b', 'a', 'b', 'a']))->emails->list();
        foreach ([1, 2] as $_) {
            self::assertInstanceOf(Failures\UnexpectedResponseException::class, $this->failure(fn () => iterator_to_array($list)));
        }
        self::assertCount(5, $this->transport->requests);
    }

    public function testWarningsReachTheCallback(): void
    {
        $heard = [];
        $transport = new FakeTransport([FakeTransport::json(200, self::SENT + ['warnings' => ['`colour` was ignored']])]);
        $client = new Client(self::KEY, 'https://x', transport: $transport, onWarning: function (string ...$one) use (&$heard): void {
            $heard[] = $one;
            throw new \RuntimeException('The log is full');
        });
        ini_set('error_log', '/dev/null');
        $client->emails->send(self::EMAIL);
        ini_restore('error_log');
        self::assertSame([['`colour` was ignored', 'emails.send']], $heard);
    }

    public function testHeadersOfTheCaller(): void
    {
        $client = $this->client(FakeTransport::json(200, self::SENT), FakeTransport::json(200, ['template' => []]));
        $headers = ['idempotency-key' => 'order-2', 'authorization' => 'Bearer other', 'X-Trace' => 't'];
        $client->emails->send(self::EMAIL, ['headers' => $headers]);
        $client->templates->create(['name' => 'a'], ['idempotency_key' => 'order-3', 'if_match' => '7']);
        [$send, $create] = array_map(static fn ($request): array => $request->headers, $this->transport->requests);
        self::assertSame(['Bearer ' . self::KEY, 'order-2', 't'], [$send['Authorization'], $send['Idempotency-Key'], $send['x-trace']]);
        self::assertCount(7, $send);
        self::assertSame(['order-3', '7'], [$create['Idempotency-Key'], $create['If-Match']]);
    }

    public function testUnknownValuesAreKept(): void
    {
        $client = $this->client(FakeTransport::json(200, ['email' => ['status' => 'teleported', 'new' => [1]]]));
        self::assertSame(['status' => 'teleported', 'new' => [1]], $client->emails->get('msg_1')['email']);
    }

    public function testCancellationEndsAWait(): void
    {
        $client = $this->client(FakeTransport::error(503, 'service_unavailable', headers: ['retry-after' => '9']));
        $asked = 0;
        $cancelled = static function () use (&$asked): bool {
            return ++$asked > 3;
        };
        $failure = $this->failure(fn () => $client->account->get(['cancelled' => $cancelled]));
        self::assertInstanceOf(Failures\CancelledException::class, $failure);
    }

    /** @dataProvider configurations */
    public function testConfiguration(?string $key, ?string $url, string $hint): void
    {
        $failure = $this->failure(fn () => new Client($key, $url));
        self::assertInstanceOf(Failures\ConfigurationException::class, $failure);
        self::assertStringContainsString($hint, $failure->getMessage());
        self::assertStringNotContainsString('rnl_', Dump::of($failure));
    }

    public static function configurations(): iterable
    {
        yield 'no key' => ['', 'https://x', 'POSTRIDER_API_KEY'];
        yield 'newline' => ["rnl_abc\nx-evil: 1", 'https://x', 'line break'];
        yield 'not ASCII' => ["rnl_\u{e4}", 'https://x', 'copy it again'];
        yield 'no URL' => [self::KEY, '', 'POSTRIDER_BASE_URL'];
        yield 'no scheme' => [self::KEY, 'mail.example.com', 'https://'];
        yield 'user' => [self::KEY, 'https://a:b@mail.example.com', 'without a user'];
        yield 'http' => [self::KEY, 'http://mail.example.com', 'allowInsecureHttp'];
        yield 'http to something like loopback' => [self::KEY, 'http://127.0.0.1.example.com', 'allowInsecureHttp'];
    }

    /** @dataProvider wrongValues */
    public function testWrongValuesAreNotSent(\Closure $call): void
    {
        $client = $this->client();
        self::assertInstanceOf(Failures\ConfigurationException::class, $this->failure(fn () => $call($client)));
        self::assertSame([], $this->transport->requests);
    }

    public static function wrongValues(): iterable
    {
        yield 'key with a newline' => [fn (Client $client) => $client->emails->send(self::EMAIL, ['idempotency_key' => "a\r\nx-evil: 1"])];
        yield 'header name' => [fn (Client $client) => $client->account->get(['headers' => ["a\r\nb" => 'c']])];
        foreach (['Transfer-Encoding', 'content-length', 'HOST', 'Connection', 'Proxy-Authorization'] as $name) {
            yield $name => [fn (Client $client) => $client->emails->send(self::EMAIL, ['headers' => [$name => '1']])];
        }
        yield 'empty id' => [fn (Client $client) => $client->emails->get('')];
        yield 'parent folder' => [fn (Client $client) => $client->emails->get('..')];
        yield 'no UTF-8' => [fn (Client $client) => $client->emails->send(['subject' => "\xff"] + self::EMAIL)];
    }

    public function testNothingShowsTheKey(): void
    {
        $echo = new Response(500, ['content-type' => 'text/html', 'x-echo' => self::KEY], '<p>Authorization: Bearer ' . self::KEY);
        $client = $this->client($echo, $echo, $echo, FakeTransport::error(403, 'forbidden', ['message' => 'key ' . self::KEY]));
        $failures = [$this->failure(fn () => $client->account->get()), $this->failure(fn () => $client->account->get())];
        $unreachable = new Client(self::KEY, 'http://127.0.0.1:9', maxRetries: 0);
        $failures[] = $this->failure(fn () => $unreachable->account->get());
        ob_start();
        var_dump($client, $unreachable);
        $dump = ob_get_clean() . print_r([$client, $this->transport->requests], true) . implode(array_map(Dump::of(...), $failures));
        self::assertStringNotContainsString(self::KEY, $dump);
        self::assertStringContainsString('[API key]', $failures[0]->excerpt);
        $this->expectException(\Exception::class);
        serialize($client);
    }
}
