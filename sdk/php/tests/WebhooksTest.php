<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Event\EmailDelivered;
use Postrider\Exception\ConfigurationException;
use Postrider\Exception\SignatureException;
use Postrider\Exception\TimestampException;
use Postrider\WebhookEvent;
use Postrider\Webhooks;

final class WebhooksTest extends TestCase
{
    private const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';
    private const TIME = 1767261601;
    private const BODY = '{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z","data":{"event_id":"evt_01TEST",'
        . '"email_id":"msg_01TEST","status":"delivered"}}';
    private const SERVICE = 't=1767261601,v1=73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7';
    private const STANDARD = 'v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU=';

    public function testVector(): void
    {
        $headers = Webhooks::generateTestHeader(self::BODY, self::SECRET, self::TIME, 'evt_01TEST');
        self::assertSame(self::SERVICE, $headers['Service-Signature']);
        self::assertSame(self::STANDARD, $headers['webhook-signature']);
    }

    /** @dataProvider headers */
    public function testRightSignatures(array $headers): void
    {
        $event = Webhooks::constructEvent(self::BODY, $headers, ['whsec_b3RoZXI=', self::SECRET], now: self::TIME + 299);
        self::assertInstanceOf(EmailDelivered::class, $event);
        self::assertSame(['evt_01TEST', 'msg_01TEST'], [$event->id, $event->data['email_id']]);
    }

    public static function headers(): iterable
    {
        $standard = ['webhook-id' => 'evt_01TEST', 'webhook-timestamp' => '1767261601', 'webhook-signature' => self::STANDARD];
        $service = ['Service-Signature' => self::SERVICE];
        yield 'service' => [$service];
        yield 'case' => [['SERVICE-SIGNATURE' => self::SERVICE]];
        yield 'server variables' => [['HTTP_SERVICE_SIGNATURE' => self::SERVICE, 'argc' => 1]];
        yield 'lists' => [array_map(static fn (string $one): array => [$one], $standard)];
        yield 'standard' => [$standard];
        yield 'repeated' => [['Service-Signature' => [self::SERVICE, 'v1=00']]];
        yield 'repeated in another case' => [['Service-Signature' => 't=1767261601,v1=00', 'service-signature' => self::SERVICE]];
        yield 'repeated standard' => [['webhook-signature' => ['v1,AAAA', self::STANDARD]] + $standard];
        yield 'joined by a server' => [['webhook-signature' => 'v1,AAAA,' . self::STANDARD] + $standard];
        yield 'several' => [['webhook-signature' => 'v1,AAAA v2,x ' . self::STANDARD] + $standard];
        yield 'rotated' => [['Service-Signature' => str_replace(',v1', ',v1=00,v1', self::SERVICE)]];
        yield 'one of two' => [['Service-Signature' => 't=1,v1=00'] + $standard];
    }

    /** @dataProvider wrong */
    public function testWrongSignatures(array $headers, string $body = self::BODY): void
    {
        $this->expectException(SignatureException::class);
        Webhooks::constructEvent($body, $headers, self::SECRET, now: self::TIME);
    }

    public static function wrong(): iterable
    {
        yield 'none' => [[]];
        yield 'body' => [['Service-Signature' => self::SERVICE], self::BODY . ' '];
        yield 'time' => [['Service-Signature' => str_replace('601', '602', self::SERVICE)]];
        yield 'empty' => [['Service-Signature' => 't=,v1=']];
        yield 'garbage' => [['Service-Signature' => "\xff", 'webhook-signature' => 'v1,', 'webhook-timestamp' => 'now']];
        $standard = ['webhook-id' => 'evt_01TEST', 'webhook-timestamp' => '1767261601', 'webhook-signature' => self::STANDARD];
        yield 'repeated id' => [['webhook-id' => ['evt_01TEST', 'evt_01TEST']] + $standard];
        yield 'repeated time' => [['webhook-timestamp' => ['1767261601', '1767261601']] + $standard];
        yield 'two times' => [['Service-Signature' => ['t=1,v1=00', self::SERVICE]]];
        foreach (['[]', '{"data":{}}', '{"type":5,"data":{}}', '{"type":"x"}', '{"type":"x","data":null}', '{"type":"x","data":[]}', '{"type":"x","data":[1]}'] as $body) {
            yield "no event: $body" => [Webhooks::generateTestHeader($body, self::SECRET, self::TIME), $body];
        }
    }

    public function testAWrongClockNamesBothTimes(): void
    {
        $this->expectException(TimestampException::class);
        $this->expectExceptionMessageMatches('/2026-01-01T10:00:01Z.*2026-01-01T10:05:02Z/');
        Webhooks::constructEvent(self::BODY, ['service-signature' => self::SERVICE], self::SECRET, now: self::TIME + 301);
    }

    public function testAnEmptySecretIsNone(): void
    {
        $forged = ['Service-Signature' => 't=1767261601,v1=' . hash_hmac('sha256', self::TIME . '.' . self::BODY, '')];
        $this->expectException(ConfigurationException::class);
        Webhooks::constructEvent(self::BODY, $forged, '', now: self::TIME);
    }

    public function testDataMayBeEmpty(): void
    {
        $body = '{"type":"x","created_at":"t","data":{}}';
        $event = Webhooks::constructEvent($body, Webhooks::generateTestHeader($body, self::SECRET), self::SECRET);
        self::assertSame(['x', []], [$event->type, $event->data]);
    }

    public function testUnknownTypesArePassedOn(): void
    {
        $body = '{"type":"email.teleported","created_at":"t","data":{"event_id":"evt_2","x":1}}';
        $event = Webhooks::constructEvent($body, Webhooks::generateTestHeader($body, self::SECRET), self::SECRET);
        self::assertSame(WebhookEvent::class, $event::class);
        self::assertSame($body, json_encode($event));
    }
}
