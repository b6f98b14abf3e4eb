<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Client;
use Postrider\Exception as Failures;

/** Calls of a server that misbehaves. */
final class TransportTest extends TestCase
{
    private const KEY = 'rnl_secretsecretsecretsecret';
    private const JSON = '{"account":{"id":"acct_1"}}';

    private function failure(FaultServer $server, array $options = [], ?Client $client = null): Failures\PostriderException
    {
        $client ??= new Client(self::KEY, $server->url, timeout: 5.0, maxRetries: 0);
        try {
            $client->account->get($options);
        } catch (Failures\PostriderException $failure) {
            self::assertStringNotContainsString(self::KEY, Dump::of($failure));

            return $failure;
        }
        self::fail('nothing was thrown');
    }

    public function testConnectionsAreKept(): void
    {
        $server = new FaultServer([['status' => 200, 'body' => self::JSON, 'mode' => 'keep']]);
        $client = new Client(self::KEY, $server->url);
        $client->account->get();
        $client->account->get();
        self::assertSame([1, 1], [$server->request()['connection'], $server->request()['connection']]);
    }

    /** @dataProvider answers */
    public function testAnswersThatAreNotTheApis(array $answer, int $status, string $hint): void
    {
        $server = new FaultServer([$answer]);
        $failure = $this->failure($server);
        self::assertInstanceOf(Failures\UnexpectedResponseException::class, $failure);
        self::assertSame($status, $failure->status);
        self::assertStringContainsString($hint, $failure->getMessage());
        self::assertLessThanOrEqual(200, strlen($failure->excerpt));
        self::assertSame(1, $server->requestsLeft());
    }

    public static function answers(): iterable
    {
        $html = ['content-type' => 'text/html'];
        yield 'web site' => [['status' => 200, 'headers' => $html, 'body' => '<h1>Shop'], 200, 'base URL'];
        yield 'no such page' => [['status' => 404, 'headers' => $html, 'body' => '<h1>Not found'], 404, 'base URL'];
        yield 'proxy' => [['status' => 502, 'headers' => $html, 'body' => '<h1>Bad gateway'], 502, 'proxy'];
        yield '413' => [['status' => 413, 'headers' => $html, 'body' => '<h1>Too large'], 413, 'proxy'];
        yield 'empty' => [['status' => 200, 'body' => ''], 200, 'empty'];
        yield 'list' => [['status' => 200, 'body' => '[1]'], 200, 'JSON'];
        yield 'half' => [['status' => 200, 'body' => '{"a":'], 200, 'JSON'];
        yield 'redirect' => [['status' => 301, 'headers' => ['location' => 'https://other.example/']], 301, 'https://other.example/'];
        yield 'other error' => [['status' => 422, 'body' => '{"error":"no"}'], 422, 'base URL'];
        yield '10 MB' => [['status' => 400, 'bytes' => 10_000_000], 400, 'base URL'];
        yield 'cut' => [['status' => 200, 'body' => self::JSON, 'mode' => 'cut'], 200, 'too early'];
        yield 'cut error' => [['status' => 500, 'bytes' => 100, 'mode' => 'cut'], 500, 'too early'];
    }

    public function testAnEndlessErrorIsCutOff(): void
    {
        $server = new FaultServer([['status' => 400, 'headers' => ['content-length' => 1 << 30], 'bytes' => 3_000_000, 'mode' => 'keep']]);
        $failure = $this->failure($server);
        self::assertInstanceOf(Failures\UnexpectedResponseException::class, $failure);
        self::assertSame(1024 * 1024, strlen($failure->response->body));
    }

    /** @dataProvider slowness */
    public function testTheDeadlineHolds(string $mode): void
    {
        $server = new FaultServer([['status' => 200, 'body' => str_repeat(' ', 9999), 'mode' => $mode]]);
        $failure = $this->failure($server, ['timeout' => 0.3]);
        self::assertInstanceOf(Failures\TimeoutException::class, $failure);
        self::assertStringContainsString('0.3 s', $failure->getMessage());
    }

    public static function slowness(): iterable
    {
        return ['no answer' => ['hang'], 'headers' => ['slow_headers'], 'body' => ['slow_body']];
    }

    public function testCancellation(): void
    {
        $server = new FaultServer([['mode' => 'hang']]);
        $asked = 0;
        $cancelled = static function () use (&$asked): bool {
            return ++$asked > 3;
        };
        self::assertInstanceOf(Failures\CancelledException::class, $this->failure($server, ['cancelled' => $cancelled]));
    }

    public function testReset(): void
    {
        $failure = $this->failure(new FaultServer([['mode' => 'reset']]));
        self::assertInstanceOf(Failures\ConnectionException::class, $failure);
        self::assertSame(['reset', false], [$failure->reason, $failure->unsent]);
    }

    public function testRefused(): void
    {
        $server = new FaultServer([['mode' => 'reset']]);
        $url = $server->url;
        $server->requestsLeft();
        $failure = $this->failure($server, client: new Client(self::KEY, $url, maxRetries: 0));
        self::assertInstanceOf(Failures\ConnectionException::class, $failure);
        self::assertSame(['refused', true], [$failure->reason, $failure->unsent]);
        self::assertStringContainsString("127.0.0.1:$server->port", $failure->getMessage());
    }

    public function testUnknownHost(): void
    {
        $client = new Client(self::KEY, 'https://no-such-host.invalid', timeout: 5.0, maxRetries: 0);
        $failure = $this->failure(new FaultServer([[]]), client: $client);
        self::assertInstanceOf(Failures\ConnectionException::class, $failure);
        self::assertSame('dns', $failure->reason);
    }

    public function testTls(): void
    {
        $file = tempnam(sys_get_temp_dir(), 'postrider');
        self::certificate($file);
        $server = new FaultServer([['status' => 200, 'body' => self::JSON]], $file);
        $failure = $this->failure($server);
        self::assertInstanceOf(Failures\ConnectionException::class, $failure);
        self::assertSame(['tls', true], [$failure->reason, $failure->permanent]);
        self::assertStringContainsString('caFile', $failure->getMessage());
        $client = new Client(self::KEY, $server->url, caFile: $file);
        self::assertSame('acct_1', $client->account->get()['account']['id']);
        unlink($file);
        $plain = new FaultServer([['status' => 400, 'body' => 'x']]);
        $client = new Client(self::KEY, str_replace('http:', 'https:', $plain->url), timeout: 5.0, maxRetries: 0);
        $failure = $this->failure($plain, client: $client);
        self::assertInstanceOf(Failures\ConnectionException::class, $failure);
        self::assertSame('tls', $failure->reason);
    }

    private static function certificate(string $file): void
    {
        $settings = tempnam(sys_get_temp_dir(), 'postrider');
        file_put_contents($settings, "[req]\ndistinguished_name=n\n[n]\n[v3]\nsubjectAltName=IP:127.0.0.1\n");
        $options = ['config' => $settings, 'x509_extensions' => 'v3', 'digest_alg' => 'sha256'];
        $key = openssl_pkey_new(['private_key_bits' => 2048] + $options);
        $request = openssl_csr_new(['commonName' => '127.0.0.1'], $key, $options);
        openssl_x509_export(openssl_csr_sign($request, null, $key, 1, $options, random_int(1, 1 << 30)), $certificate);
        openssl_pkey_export($key, $private, null, $options);
        file_put_contents($file, $certificate . $private);
        unlink($settings);
    }

    public function testAConnectionThatMustNotRepeatIsNew(): void
    {
        $server = new FaultServer([['status' => 200, 'body' => '{"template":{}}']]);
        $client = new Client(self::KEY, $server->url);
        $client->templates->create(['name' => 'a']);
        $client->templates->create(['name' => 'b']);
        self::assertSame([1, 2], [$server->request()['connection'], $server->request()['connection']]);
    }

    public function testWaitForEmail(): void
    {
        $server = new FaultServer([
            ['status' => 200, 'body' => '{"total":0,"messages":[]}'],
            ['status' => 200, 'body' => '{"total":1,"messages":[{"id":7,"subject":"Code"}]}'],
            ['status' => 200, 'body' => '{"id":7,"text":"123456"}'],
            ['status' => 200, 'body' => '{"total":0,"messages":[]}'],
        ]);
        $client = new Client(self::KEY, $server->url);
        self::assertSame('123456', $client->dev->waitForEmail(['to' => 'a@b.example', 'timeout' => 9])['text']);
        self::assertMatchesRegularExpression('~^/messages\?to=a%40b\.example&wait=\d+ms$~', $server->request()['path']);
        $this->expectException(Failures\TimeoutException::class);
        $client->dev->waitForEmail(['timeout' => 0]);
    }

    public function testEventStream(): void
    {
        $event = static fn (string $id): string => "id: c$id\r\nevent: email.sent\r\ndata: {\"id\":\"evt_$id\",\"type\":\"email.sent\","
            . "\"created_at\":\"t\",\ndata: \"data\":{\"email_id\":\"msg_$id\"}}\n\n";
        $stream = ['content-type' => 'text/event-stream', 'content-length' => null];
        $server = new FaultServer([
            ['status' => 200, 'headers' => $stream, 'body' => ":hello\n\n" . str_replace("\r\n", "\n", $event('1')) . 'id: half'],
            ['status' => 200, 'headers' => $stream, 'body' => ":\nid: c1b\n\n"],
            ['mode' => 'reset'],
            ['status' => 503, 'headers' => ['content-type' => 'text/html'], 'body' => '<h1>'],
            ['status' => 200, 'headers' => $stream, 'body' => str_replace("\r\n", "\n", $event('2'))],
            ['status' => 401, 'body' => '{"error":{"message":"Unauthorized","code":"unauthorized"}}'],
        ]);
        $client = new Client(self::KEY, $server->url, clock: new FakeClock());
        $seen = [];
        try {
            foreach ($client->webhookEvents->stream(['types' => ['email.sent'], 'after' => 'c0']) as $one) {
                $seen[] = [$one->id, $one->cursor, $one->data['email_id'], $one::class];
            }
        } catch (Failures\AuthenticationException) {
            $seen[] = '401';
        }
        $class = \Postrider\Event\EmailSent::class;
        self::assertSame([['evt_1', 'c1', 'msg_1', $class], ['evt_2', 'c2', 'msg_2', $class], '401'], $seen);
        $cursors = array_map(static fn (): string => $server->request()['headers']['last-event-id'], range(1, 6));
        self::assertSame(['c0', 'c1', 'c1b', 'c1b', 'c1b', 'c2'], $cursors);
    }

    public function testAStreamOfAServerThatWasNeverThere(): void
    {
        $client = new Client(self::KEY, 'http://127.0.0.1:9', clock: new FakeClock());
        $this->expectException(Failures\ConnectionException::class);
        $client->webhookEvents->stream()->current();
    }

    public function testProxies(): void
    {
        $server = new FaultServer([['status' => 200, 'body' => self::JSON]]);
        putenv('http_proxy=http://127.0.0.1:9');
        putenv('https_proxy=' . $server->url);
        try {
            // A server on this machine is asked without a proxy, which would read the API key.
            self::assertSame('acct_1', (new Client(self::KEY, $server->url))->account->get()['account']['id']);
            self::assertSame('/account', $server->request()['path']);
            // The proxy answers CONNECT with 200; what comes then is no TLS.
            $failure = $this->failure($server, client: new Client(self::KEY, 'https://mail.example.com', timeout: 5.0, maxRetries: 0));
            self::assertInstanceOf(Failures\ConnectionException::class, $failure);
            self::assertArrayNotHasKey('authorization', $server->request()['headers']);
        } finally {
            putenv('http_proxy');
            putenv('https_proxy');
        }
    }
}
