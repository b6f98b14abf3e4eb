<?php

declare(strict_types=1);

namespace Postrider\Laravel\Tests;

use Illuminate\Foundation\Application as Laravel;
use Illuminate\Http\Request;
use Illuminate\Mail\Events\MessageSent;
use Illuminate\Notifications\AnonymousNotifiable;
use Illuminate\Support\Facades\Event;
use Illuminate\Support\Facades\Mail;
use PHPUnit\Framework\TestCase;
use Postrider\Client;
use Postrider\Exception\ApprovalRequiredException;
use Postrider\Exception\ConfigurationException;
use Postrider\Laravel\Events\EmailBounced;
use Postrider\Laravel\Events\WebhookReceived;
use Postrider\Laravel\Facades\Postrider;
use Postrider\Tests\DevServer;
use Postrider\Tests\FakeTransport;
use Postrider\Webhooks;
use Symfony\Component\HttpKernel\Exception\HttpException;
use Symfony\Component\Mailer\Exception\TransportException;

final class LaravelTest extends TestCase
{
    private const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';

    private FakeTransport $transport;

    private function app(\Postrider\Response ...$answers): Laravel
    {
        $app = Application::make(['api_key' => 'rnl_a', 'base_url' => 'https://mail.example.com', 'webhook' => [
            'path' => 'hooks/mail', 'secret' => 'whsec_b3RoZXI=,' . self::SECRET, 'tolerance' => 300,
        ]]);
        $this->transport = new FakeTransport(array_values($answers));
        $app->instance(Client::class, new Client('rnl_a', 'https://mail.example.com', transport: $this->transport));

        return $app;
    }

    private function params(): array
    {
        return json_decode((string) $this->transport->requests[0]->body, true);
    }

    public function testMail(): void
    {
        $this->app(FakeTransport::json(200, ['id' => 'msg_1', 'status' => 'sent']));
        $event = null;
        Event::listen(MessageSent::class, static function (MessageSent $sent) use (&$event): void {
            $event = $sent;
        });
        $sent = Mail::to('grace@example.net')->send(new OrderShipped('order-1'));
        self::assertSame('msg_1', $sent?->getMessageId());
        self::assertSame('msg_1', $event?->message->getHeaders()->get('X-Postrider-Email-ID')?->getBody());
        self::assertSame('order-1', $this->transport->requests[0]->headers['Idempotency-Key']);
        self::assertSame([
            'from' => '"Ada" <ada@example.com>',
            'to' => ['grace@example.net'],
            'subject' => 'Your order',
            'html' => '<p>Thanks</p>',
            'attachments' => [['name' => 'list.csv', 'content_type' => 'text/csv', 'data' => base64_encode('a,b')]],
            'tags' => [['name' => 'shipment', 'value' => 'true'], ['name' => 'order', 'value' => '4711']],
        ], $this->params());
    }

    public function testAFailureIsATransportException(): void
    {
        $this->app(FakeTransport::error(422, 'validation_error', ['details' => ['suppressed' => ['grace@example.net']]]));
        $this->expectException(TransportException::class);
        Mail::to('grace@example.net')->send(new OrderShipped('order-1'));
    }

    public function testAnEmailThatWaitsForAnApprovalIsNoFailureOfTheMailer(): void
    {
        $this->app(FakeTransport::json(202, ['status' => 'approval_required', 'approval_id' => 'apr_1']));
        $this->expectException(ApprovalRequiredException::class);
        Mail::to('grace@example.net')->send(new OrderShipped('order-1'));
    }

    public function testNotification(): void
    {
        $app = $this->app(FakeTransport::json(200, ['id' => 'msg_1']), FakeTransport::json(200, ['id' => 'msg_1']));
        $notification = new Welcome();
        (new AnonymousNotifiable())->route('mail', ['grace@example.net' => 'Grace'])->notifyNow($notification);
        self::assertSame(['"Grace" <grace@example.net>'], $this->params()['to']);
        self::assertSame(['email' => 'ada@example.com', 'name' => 'Ada'], $this->params()['from']);
        self::assertMatchesRegularExpression('/^[0-9a-f-]{36}:/', $this->transport->requests[0]->headers['Idempotency-Key']);
    }

    public function testFacade(): void
    {
        $this->app(FakeTransport::json(200, ['account' => ['id' => 'acct_1']]));
        self::assertSame('acct_1', Postrider::account()->get()['account']['id']);
        self::assertSame(200, Postrider::lastResponse()?->status);
    }

    private function deliver(Laravel $app, string $body, array $headers): int
    {
        $request = Request::create('/hooks/mail', 'POST', content: $body);
        $request->headers->add($headers);
        $app->instance('request', $request);

        return $app['router']->dispatch($request)->getStatusCode();
    }

    public function testWebhook(): void
    {
        $app = $this->app();
        $heard = [];
        foreach ([WebhookReceived::class, EmailBounced::class] as $class) {
            Event::listen($class, static function (WebhookReceived $received) use (&$heard): void {
                $heard[] = $received::class . ' ' . $received->event->id;
            });
        }
        $body = '{"type":"email.bounced","created_at":"t","data":{"event_id":"evt_1"}}';
        self::assertSame(204, $this->deliver($app, $body, Webhooks::generateTestHeader($body, self::SECRET)));
        self::assertSame([WebhookReceived::class . ' evt_1', EmailBounced::class . ' evt_1'], $heard);
        $body = '{"type":"email.teleported","created_at":"t","data":{"event_id":"evt_2"}}';
        self::assertSame(204, $this->deliver($app, $body, Webhooks::generateTestHeader($body, self::SECRET)));
        self::assertSame(WebhookReceived::class . ' evt_2', end($heard));
        $app['router']->getRoutes()->refreshNameLookups();
        self::assertSame('http://localhost/hooks/mail', route('postrider.webhook'));
    }

    public function testAForgedWebhookIsRefused(): void
    {
        $app = $this->app();
        try {
            $this->deliver($app, '{}', Webhooks::generateTestHeader('{}', 'whsec_Zm9yZ2Vk'));
            self::fail('nothing was thrown');
        } catch (HttpException $failure) {
            self::assertSame(401, $failure->getStatusCode());
        }
    }

    public function testWithoutASecretNothingIsAccepted(): void
    {
        $app = $this->app();
        $app['config']->set('postrider.webhook.secret', null);
        $this->expectException(ConfigurationException::class);
        $this->deliver($app, '{}', ['Service-Signature' => 't=1,v1=' . hash_hmac('sha256', '1.{}', '')]);
    }

    public function testARealServer(): void
    {
        $server = DevServer::get();
        Application::make(['api_key' => $server->apiKey, 'base_url' => $server->url]);
        $key = 'order-' . bin2hex(random_bytes(6));
        $mailable = (new OrderShipped($key))->cc('linus@example.net');
        $sent = Mail::to('grace@example.net')->send($mailable);
        $id = (string) $sent?->getMessageId();
        self::assertStringStartsWith('msg_', $id);
        self::assertSame($id, Mail::to('grace@example.net')->send((new OrderShipped($key))->cc('linus@example.net'))?->getMessageId());
        $email = Postrider::emails()->get($id)['email'];
        self::assertEquals([['name' => 'shipment', 'value' => 'true'], ['name' => 'order', 'value' => '4711']], $email['tags']);
        self::assertSame(['grace@example.net'], $email['to']);
        $raw = $server->rawOf($id);
        self::assertStringContainsString('list.csv', $raw);
        self::assertStringContainsString(base64_encode('a,b'), $raw);
        (new AnonymousNotifiable())->route('mail', 'new@example.net')->notifyNow(new Welcome());
        self::assertSame(200, Postrider::lastResponse()?->status);
    }
}
