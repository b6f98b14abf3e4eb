<?php

declare(strict_types=1);

namespace Postrider\Tests;

use Nyholm\Psr7\Factory\Psr17Factory;
use PHPUnit\Framework\TestCase;
use Postrider\Client;
use Postrider\Exception as Failures;
use Postrider\Psr18Transport;
use Symfony\Component\HttpClient\HttpClient;
use Symfony\Component\HttpClient\Psr18Client;

final class Psr18Test extends TestCase
{
    private const KEY = 'rnl_secretsecretsecretsecret';

    private function client(string $url): Client
    {
        if (!interface_exists(\Psr\Http\Client\ClientInterface::class) || !class_exists(Psr17Factory::class)) {
            self::markTestSkipped('missing: apt install php-nyholm-psr7 php-psr-http-client php-symfony-http-client');
        }
        $factory = new Psr17Factory();
        $http = new Psr18Client(HttpClient::create(['timeout' => 0.3, 'max_redirects' => 0]), $factory, $factory);

        return new Client(self::KEY, $url, maxRetries: 0, transport: new Psr18Transport($http, $factory, $factory));
    }

    public function testCall(): void
    {
        $server = new FaultServer([['status' => 200, 'body' => '{"id":"msg_1","status":"sent"}']]);
        $sent = $this->client($server->url)->emails->send(['to' => 'a@b'], ['idempotency_key' => 'k']);
        self::assertSame('msg_1', $sent['id']);
        $request = $server->request();
        self::assertSame(['POST', '/emails', '{"to":"a@b"}'], [$request['method'], $request['path'], $request['body']]);
        self::assertSame(['Bearer ' . self::KEY, 'k'], [$request['headers']['authorization'], $request['headers']['idempotency-key']]);
    }

    /** @dataProvider failures */
    public function testFailures(array $answer, string $class): void
    {
        $server = new FaultServer([$answer]);
        try {
            $this->client($server->url)->account->get();
            self::fail('nothing was thrown');
        } catch (Failures\PostriderException $failure) {
            self::assertInstanceOf($class, $failure);
            self::assertStringNotContainsString(self::KEY, Dump::of($failure));
        }
    }

    public static function failures(): iterable
    {
        yield 'timeout' => [['mode' => 'hang'], Failures\TimeoutException::class];
        yield 'reset' => [['mode' => 'reset'], Failures\ConnectionException::class];
        yield 'page' => [['status' => 502, 'body' => '<html>'], Failures\UnexpectedResponseException::class];
        yield 'large error' => [['status' => 400, 'bytes' => 10_000_000], Failures\UnexpectedResponseException::class];
        yield 'error' => [['status' => 404, 'body' => '{"error":{"message":"No","code":"not_found"}}'], Failures\NotFoundException::class];
    }
}
