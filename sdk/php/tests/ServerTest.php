<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Bridge\Symfony\PostriderTransportFactory;
use Postrider\Event\EmailDelivered;
use Postrider\Exception\IdempotencyConflictException;
use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport;
use Symfony\Component\Mime\Email;

/** Calls of a real server. */
final class ServerTest extends TestCase
{
    public function testSendListAndStream(): void
    {
        $client = DevServer::get()->client();
        $start = $client->webhookEvents->list(['order' => 'asc', 'limit' => 1]);
        $to = 'stream' . bin2hex(random_bytes(4)) . '@example.net';
        $email = ['from' => 'Ada <ada@example.com>', 'to' => [$to], 'subject' => 'Hello', 'text' => 'Hi', 'tags' => ['flow' => 'php']];
        $sent = $client->emails->send($email, ['idempotency_key' => $to]);
        self::assertSame($sent, $client->emails->send($email, ['idempotency_key' => $to]));
        self::assertSame('true', $client->lastResponse()?->header('idempotent-replayed'));
        try {
            $client->emails->send(['text' => 'Other'] + $email, ['idempotency_key' => $to]);
            self::fail('nothing was thrown');
        } catch (IdempotencyConflictException $failure) {
            self::assertSame(409, $failure->status);
        }
        $more = $client->emails->sendBatch(['emails' => array_fill(0, 4, $email)])['data'];
        $wanted = [$sent['id'], ...array_column($more, 'id')];
        $delivered = [];
        foreach ($client->webhookEvents->stream(['types' => ['email.delivered'], 'after' => $start['next_cursor'] ?? '']) as $event) {
            self::assertInstanceOf(EmailDelivered::class, $event);
            $delivered[] = $event->data['email_id'];
            if (array_diff($wanted, $delivered) === []) {
                break;
            }
        }
        $page = $client->emails->list(['limit' => 2]);
        self::assertCount(2, $page->items());
        self::assertSame([], array_diff($wanted, array_column(iterator_to_array($page), 'id')));
        self::assertStringContainsString('Subject: Hello', $client->emails->raw($sent['id']));
    }

    public function testSymfonyMailer(): void
    {
        if (!class_exists(Email::class)) {
            self::markTestSkipped('missing: apt install php-symfony-mailer php-symfony-http-client');
        }
        $server = DevServer::get();
        $dsn = 'postrider://' . $server->apiKey . '@' . substr($server->url, 7);
        $transport = (new Transport([new PostriderTransportFactory()]))->fromString($dsn);
        $email = SymfonyTest::email();
        (new Mailer($transport))->send($email);
        $sent = $transport->send($email);
        self::assertStringStartsWith('msg_', (string) $sent?->getMessageId());
        self::assertStringNotContainsString($server->apiKey, (string) $sent?->getDebug());
        $found = $server->client()->emails->get((string) $sent?->getMessageId())['email'];
        self::assertSame('product', $found['category']);
        self::assertEquals([['name' => 'welcome', 'value' => 'true'], ['name' => 'order', 'value' => '4711']], $found['tags']);
        $raw = $server->rawOf($found['id']);
        foreach (['list.csv', base64_encode('a,b'), 'Content-ID: <logo>', 'X-Flow:'] as $part) {
            self::assertStringContainsString($part, $raw);
        }
        $subjects = $server->client()->emails->list(['to' => 'linus@example.net'])->items();
        self::assertLessThanOrEqual(1, \count($subjects), 'the idempotency key must keep the second send from being another email');
    }
}
