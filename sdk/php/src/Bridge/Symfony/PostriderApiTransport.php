<?php

declare(strict_types=1);

namespace Postrider\Bridge\Symfony;

use Postrider\ErrorCodes;
use Postrider\Exception\PostriderException;
use Postrider\Failure;
use Postrider\Operation;
use Postrider\RequestBuilder;
use Postrider\Response;
use Postrider\Version;
use Psr\Log\LoggerInterface;
use Symfony\Component\Mailer\Envelope;
use Symfony\Component\Mailer\Exception\HttpTransportException;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\SentMessage;
use Symfony\Component\Mailer\Transport\AbstractApiTransport;
use Symfony\Component\Mime\Email;
use Symfony\Contracts\HttpClient\Exception\ExceptionInterface;
use Symfony\Contracts\HttpClient\HttpClientInterface;
use Symfony\Contracts\HttpClient\ResponseInterface;

/** Sends messages of Symfony Mailer by `POST /emails`. */
final class PostriderApiTransport extends AbstractApiTransport
{
    use KeepsIdempotencyKey;

    private readonly RequestBuilder $requests;

    /** @param string $baseUrl for example `https://mail.example.com` */
    public function __construct(
        #[\SensitiveParameter]
        string $apiKey,
        private readonly string $baseUrl,
        ?HttpClientInterface $client = null,
        mixed $dispatcher = null,
        ?LoggerInterface $logger = null,
    ) {
        $this->requests = new RequestBuilder($apiKey, $baseUrl, false, 'postrider-symfony/' . Version::SDK);
        parent::__construct($client, $dispatcher, $logger);
    }

    public function __toString(): string
    {
        return 'postrider+api://' . preg_replace('~^https?://~', '', $this->baseUrl);
    }

    /** As the parent, but keeps the API key out of the debug text, which has the header of the request. */
    protected function doSend(SentMessage $message): void
    {
        try {
            $message->appendDebug($this->debug($this->doSendHttp($message)));
        } catch (HttpTransportException $failure) {
            $failure->appendDebug($this->debug($failure->getResponse()));
            throw $failure;
        }
    }

    protected function doSendApi(SentMessage $sentMessage, Email $email, Envelope $envelope): ResponseInterface
    {
        $wanted = EmailParams::of($email, $envelope);
        $operation = new Operation(
            'emails.send',
            'POST',
            '/emails',
            maps: ['headers', 'variables'],
            body: 'application/json',
            idempotent: true,
        );
        $options = $wanted->idempotencyKey === null ? [] : ['idempotency_key' => $wanted->idempotencyKey];
        try {
            $request = $this->requests->build($operation, [], $wanted->params, $options);
        } catch (PostriderException $failure) {
            throw new TransportException('Could not send the email: ' . $failure->getMessage(), 0, $failure);
        }
        $answer = $this->client->request($request->method, $request->url, [
            'headers' => $request->headers,
            'body' => $request->body,
            'max_redirects' => 0,
            'max_duration' => 60.0,
        ]);
        try {
            $headers = array_map(static fn (array $values): string => implode(', ', $values), $answer->getHeaders(false));
            $response = new Response($answer->getStatusCode(), $headers, $answer->getContent(false));
        } catch (ExceptionInterface $failure) {
            $text = $this->requests->redactText($failure->getMessage());
            throw new HttpTransportException("Could not reach the postrider server: $text", $answer);
        }
        // No failure of the transport: a failover transport must not send the email in another way.
        $held = $response->status === 202 ? ErrorCodes::held($this->requests->redact($response)) : null;
        if ($held !== null) {
            throw $held;
        }
        $sent = json_decode($response->body, true);
        if ($response->status !== 200 || !\is_string($sent['id'] ?? null)) {
            $failure = Failure::of($this->requests->redact($response));
            throw new HttpTransportException('Could not send the email: ' . $failure->getMessage(), $answer, 0, $failure);
        }
        $sentMessage->setMessageId($sent['id']);

        return $answer;
    }

    private function debug(ResponseInterface $response): string
    {
        return $this->requests->redactText((string) $response->getInfo('debug'));
    }
}
