<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Bridge\Symfony\PostriderApiTransport;
use Postrider\Bridge\Symfony\PostriderTransportFactory;
use Postrider\Exception\ApprovalRequiredException;
use Symfony\Component\HttpClient\MockHttpClient;
use Symfony\Component\HttpClient\Response\MockResponse;
use Symfony\Component\Mailer\Envelope;
use Symfony\Component\Mailer\Exception\HttpTransportException;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\Exception\TransportExceptionInterface;
use Symfony\Component\Mailer\Exception\IncompleteDsnException;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mailer\Transport\Dsn;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;
use Symfony\Component\Mime\Header\UnstructuredHeader;

final class SymfonyTest extends TestCase
{
    private const KEY = 'rnl_secretsecretsecretsecret';

    protected function setUp(): void
    {
        if (!class_exists(MockHttpClient::class) || !class_exists(Email::class)) {
            self::markTestSkipped('missing: apt install php-symfony-mailer php-symfony-http-client');
        }
    }

    public static function email(): Email
    {
        $email = (new Email())
            ->from(new Address('ada@example.com', 'Ada "the first"'))
            ->to(new Address('grace@example.net', 'Grace'), 'linus@example.net')
            ->cc('cc@example.net')
            ->bcc('bcc@example.net')
            ->replyTo('help@example.com')
            ->subject('Grüße')
            ->html('<p>Hi <img src="cid:logo"></p>')
            ->text('Hi')
            ->attach('a,b', 'list.csv', 'text/csv')
            ->embed('PNG', 'logo', 'image/png');
        $email->getHeaders()
            ->addTextHeader('Idempotency-Key', 'order-' . bin2hex(random_bytes(4)))
            ->addTextHeader('X-Flow', 'Größe')
            ->addTextHeader('Service-Category', 'product')
            ->addTextHeader('References', '<a@b> <c@d>')
            ->add(new TagHeader('welcome'))
            ->add(new MetadataHeader('order', '4711'));

        return $email;
    }

    /** @param list<MockResponse> $answers */
    private function transport(array $answers): PostriderApiTransport
    {
        return new PostriderApiTransport(self::KEY, 'https://mail.example.com', new MockHttpClient($answers));
    }

    public function testParams(): void
    {
        $answer = new MockResponse('{"id":"msg_1","status":"sent"}');
        $email = self::email();
        $sent = $this->transport([$answer])->send($email);
        self::assertSame('msg_1', $sent?->getMessageId());
        self::assertSame('https://mail.example.com/emails', $answer->getRequestUrl());
        $headers = implode("\n", $answer->getRequestOptions()['headers']);
        self::assertStringContainsString('Bearer ' . self::KEY, $headers);
        self::assertStringContainsString('Idempotency-Key: order-', $headers);
        self::assertSame([
            'category' => 'product',
            'from' => '"Ada \"the first\"" <ada@example.com>',
            'to' => ['"Grace" <grace@example.net>', 'linus@example.net'],
            'subject' => 'Grüße',
            'html' => '<p>Hi <img src="cid:logo"></p>',
            'text' => 'Hi',
            'reply_to' => ['help@example.com'],
            'attachments' => [
                ['name' => 'list.csv', 'content_type' => 'text/csv', 'data' => base64_encode('a,b')],
                ['name' => 'logo', 'content_type' => 'image/png', 'data' => base64_encode('PNG'), 'content_id' => 'logo'],
            ],
            'cc' => ['cc@example.net'],
            'bcc' => ['bcc@example.net'],
            'headers' => ['X-Flow' => 'Größe', 'References' => '<a@b> <c@d>'],
            'tags' => [['name' => 'welcome', 'value' => 'true'], ['name' => 'order', 'value' => '4711']],
        ], json_decode($answer->getRequestOptions()['body'], true));
    }

    public function testAMessageKeepsItsKeyUntilItIsSent(): void
    {
        $busy = static fn (): MockResponse => new MockResponse('{"error":{"message":"busy","code":"service_unavailable"}}', ['http_code' => 503]);
        $sent = static fn (): MockResponse => new MockResponse('{"id":"msg_1","status":"sent"}');
        $refused = new MockResponse('{"error":{"message":"no","code":"validation_error"}}', ['http_code' => 422]);
        $answers = [$busy(), new MockResponse('', ['error' => 'lost']), $sent(), $sent(), $busy(), $refused, $sent()];
        $transport = $this->transport($answers);
        $email = (new Email())->from('ada@example.com')->to('grace@example.net')->subject('a')->text('b')
            ->embed('PNG', 'logo', 'image/png');
        foreach ($answers as $number => $_) {
            if ($number === 1) {
                $email = unserialize(serialize($email)); // As Messenger stores it.
            } elseif ($number === 5) {
                $email->subject('another');
            }
            try {
                $transport->send($email);
            } catch (TransportException) {
                // The next attempt follows. Another transport would not send the key.
                self::assertStringNotContainsString('Attempt-Key', $email->toString());
            }
        }
        $requests = array_map(static fn (MockResponse $one): array => $one->getRequestOptions(), $answers);
        $keys = array_map(static fn (array $one): string => preg_grep('/^Idempotency-Key: /i', $one['headers'])
            ? current(preg_grep('/^Idempotency-Key: /i', $one['headers'])) : '', $requests);
        self::assertSame([$keys[0], $keys[0]], [$keys[1], $keys[2]], 'retries have the same key');
        self::assertSame($requests[0]['body'], $requests[2]['body']);
        self::assertCount(5, array_unique($keys), 'a message that was sent, changed or refused has a new key');
        self::assertNotContains('', $keys);
        self::assertStringNotContainsString('Attempt-Key', implode($requests[0]['headers']) . $requests[0]['body']);
        self::assertFalse($email->getHeaders()->has('X-Postrider-Attempt-Key'));
    }

    public function testFieldsOfTheServerAreLeftOut(): void
    {
        $answer = new MockResponse('{"id":"msg_1","status":"sent"}');
        $email = self::email()->date(new \DateTimeImmutable())->sender('s@example.com')->returnPath('r@example.com');
        $email->getHeaders()->addIdHeader('Message-ID', 'a@b.example')->addTextHeader('MIME-Version', '1.0');
        $this->transport([$answer])->send($email);
        $params = json_decode($answer->getRequestOptions()['body'], true);
        self::assertSame(['X-Flow', 'References'], array_keys($params['headers']));
    }

    public function testWhoIsInToAndCcGetsOneEmail(): void
    {
        $answer = new MockResponse('{"id":"msg_1","status":"sent"}');
        $this->transport([$answer])->send(self::email()->cc('linus@example.net', 'cc@example.net')->bcc('cc@example.net'));
        $params = json_decode($answer->getRequestOptions()['body'], true);
        self::assertSame(['"Grace" <grace@example.net>', 'linus@example.net'], $params['to']);
        self::assertSame(['cc@example.net'], $params['cc']);
        self::assertArrayNotHasKey('bcc', $params);
    }

    public function testAnEnvelopeReachesItsRecipientsOnly(): void
    {
        $answer = new MockResponse('{"id":"msg_1","status":"sent"}');
        $envelope = new Envelope(new Address('ada@example.com'), [new Address('test@example.org')]);
        $this->transport([$answer])->send(self::email(), $envelope);
        $params = json_decode($answer->getRequestOptions()['body'], true);
        self::assertSame(['test@example.org'], $params['to']);
        self::assertArrayNotHasKey('cc', $params);
        self::assertArrayNotHasKey('bcc', $params);
    }

    public function testRecipientsOfTheEnvelopeAloneGetABlindCopy(): void
    {
        $recipients = [new Address('grace@example.net'), new Address('hidden@example.net'), new Address('bcc@example.net')];
        $params = $this->params(self::email(), new Envelope(new Address('ada@example.com'), $recipients));
        self::assertSame(['"Grace" <grace@example.net>'], $params['to']);
        self::assertSame(['bcc@example.net', 'hidden@example.net'], $params['bcc']);
        self::assertArrayNotHasKey('cc', $params);
    }

    public function testCopiesBecomeToIfNoOtherRecipientRemains(): void
    {
        $recipients = [new Address('cc@example.net'), new Address('bcc@example.net')];
        $params = $this->params(self::email(), new Envelope(new Address('ada@example.com'), $recipients));
        self::assertSame([['cc@example.net'], ['bcc@example.net']], [$params['to'], $params['bcc']]);
        self::assertArrayNotHasKey('cc', $params);
    }

    public function testRecipientsOfTheEnvelopeAloneGetABlindCopyBesideCopies(): void
    {
        $recipients = [new Address('cc@example.net'), new Address('hidden@example.net')];
        $params = $this->params(self::email(), new Envelope(new Address('ada@example.com'), $recipients));
        self::assertSame([['cc@example.net'], ['hidden@example.net']], [$params['to'], $params['bcc']]);
        self::assertArrayNotHasKey('cc', $params);
    }

    public function testEmbeddedFilesWhoseNamesAreNoContentId(): void
    {
        $email = (new Email())->from('ada@example.com')->to('grace@example.net')->subject('a')
            ->html('<img src="cid:logo one.png"><img src="cid:logo"><img src="cid:logo one.png.bak"><img src="cid:@images/Grüße.png">');
        foreach (['logo one.png', 'logo', 'logo one.png.bak', '@images/Grüße.png'] as $name) {
            $email->embed('PNG', $name, 'image/png');
        }
        $params = $this->params($email);
        self::assertSame(['logo one.png', 'logo', 'logo one.png.bak', 'Grüße.png'], array_column($params['attachments'], 'name'));
        $ids = array_column($params['attachments'], 'content_id');
        self::assertSame('logo', $ids[1]);
        self::assertCount(4, preg_grep('/^[a-z0-9@]+$/', array_unique($ids)));
        self::assertSame(implode(array_map(static fn (string $id): string => "<img src=\"cid:$id\">", $ids)), $params['html']);
        self::assertSame($params, $this->params($email), 'a retry has the same idempotency key');
    }

    public function testAttachmentsWithoutNameGetOne(): void
    {
        $params = $this->params(self::email()->attach('PDF', null, 'application/pdf'));
        self::assertSame(['list.csv', 'logo', 'attachment'], array_column($params['attachments'], 'name'));
    }

    public function testAHeaderFieldThatOccursTwiceIsRefused(): void
    {
        $fields = [
            new UnstructuredHeader('x-twice', '2'),
            new UnstructuredHeader('idempotency-key', '2'),
            new UnstructuredHeader('service-category', 'newsletter'),
            new MetadataHeader('order', '2'),
        ];
        foreach ($fields as $field) {
            $email = self::email();
            $email->getHeaders()->addTextHeader('X-Twice', '1')->add($field);
            try {
                $this->params($email);
                self::fail($field->getName());
            } catch (TransportException $failure) {
                self::assertStringContainsString($field->getName() . ' occurs more than once', $failure->getMessage());
            }
        }
        $email = self::email();
        $email->getHeaders()->add(new TagHeader('trial'));
        self::assertSame(['welcome', 'trial', 'order'], array_column($this->params($email)['tags'], 'name'));
    }

    /** @return array<string, mixed> */
    private function params(Email $email, ?Envelope $envelope = null): array
    {
        $answer = new MockResponse('{"id":"msg_1","status":"sent"}');
        $this->transport([$answer])->send($email, $envelope);

        return json_decode($answer->getRequestOptions()['body'], true);
    }

    /** @dataProvider failures */
    public function testFailures(MockResponse $answer, string $text): void
    {
        try {
            $this->transport([$answer])->send(self::email());
            self::fail('nothing was thrown');
        } catch (HttpTransportException $failure) {
            self::assertStringContainsString($text, $failure->getMessage());
            self::assertStringNotContainsString(self::KEY, Dump::of($failure) . $failure->getDebug());
        }
    }

    /** Else a failover transport would send the email in another way. */
    public function testAnEmailThatWaitsForAnApprovalIsNoFailureOfTheTransport(): void
    {
        $held = ['status' => 'approval_required', 'approval_id' => 'apr_1', 'message' => 'A person decides'];
        $answer = new MockResponse((string) json_encode($held), ['http_code' => 202]);
        try {
            $this->transport([$answer])->send(self::email());
            self::fail('it was sent');
        } catch (ApprovalRequiredException $failure) {
            self::assertSame('apr_1', $failure->approvalId);
            self::assertNotInstanceOf(TransportExceptionInterface::class, $failure);
        }
    }

    public function testEmailsThatCannotBeWritten(): void
    {
        $variables = self::email();
        $variables->getHeaders()->addTextHeader('Service-Variables', '{bad');
        foreach ([$variables, self::email()->text("\xff")] as $email) {
            try {
                $this->transport([new MockResponse('{"id":"msg_1"}')])->send($email);
                self::fail('nothing was thrown');
            } catch (TransportException $failure) {
                self::assertStringContainsString('JSON', $failure->getMessage());
            }
        }
    }

    public static function failures(): iterable
    {
        $error = '{"error":{"message":"Recipient is suppressed","code":"validation_error","details":{"suppressed":["a@b"]}}}';
        yield 'error' => [new MockResponse($error, ['http_code' => 422]), 'Recipient is suppressed'];
        yield 'page' => [new MockResponse('<html>', ['http_code' => 200]), 'base URL'];
        yield 'no answer' => [new MockResponse('', ['error' => 'refused']), 'refused'];
        $debug = ['http_code' => 403, 'debug' => '> Authorization: Bearer ' . self::KEY];
        yield 'debug' => [new MockResponse('<html>', $debug), 'base URL'];
    }

    public function testDsn(): void
    {
        $factory = new PostriderTransportFactory(null, new MockHttpClient());
        $text = static fn (string $dsn): string => (string) $factory->create(Dsn::fromString($dsn));
        self::assertSame('postrider+api://mail.example.com', $text('postrider://rnl_a@mail.example.com'));
        self::assertSame('postrider+api://127.0.0.1:8025', $text('postrider+api://rnl_a@127.0.0.1:8025'));
        $this->expectException(IncompleteDsnException::class);
        $text('postrider://mail.example.com');
    }
}
