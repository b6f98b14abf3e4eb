<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\ConnectionException;
use Postrider\Exception\TimeoutException;
use Postrider\Exception\UnexpectedResponseException;
use Psr\Http\Client\ClientExceptionInterface;
use Psr\Http\Client\ClientInterface;
use Psr\Http\Message\RequestFactoryInterface;
use Psr\Http\Message\StreamFactoryInterface;

/**
 * Sends requests by a PSR-18 client. PSR-18 has no timeout and no cancellation: configure the client's own timeout and
 * switch its redirects off. A call with retries still ends at its deadline, plus the client's timeout.
 */
final class Psr18Transport implements Transport
{
    public function __construct(
        private readonly ClientInterface $client,
        private readonly RequestFactoryInterface $requests,
        private readonly StreamFactoryInterface $streams,
    ) {
    }

    public function send(#[\SensitiveParameter] Request $request, float $timeout, ?callable $cancelled = null): Response
    {
        $message = $this->requests->createRequest($request->method, $request->url);
        foreach ($request->headers as $name => $value) {
            $message = $message->withHeader($name, $value);
        }
        if ($request->body !== null) {
            $message = $message->withBody($this->streams->createStream($request->body));
        }
        try {
            $answer = $this->client->sendRequest($message);
        } catch (ClientExceptionInterface $failure) {
            // The failure is no `previous`: it has the request, and so the API key.
            $number = preg_match('/cURL error (\d+)/i', $failure->getMessage(), $found) === 1 ? (int) $found[1] : 0;
            if ($number === CURLE_OPERATION_TIMEDOUT || preg_match('~time(d )?out~i', $failure->getMessage()) === 1) {
                throw new TimeoutException('The HTTP client gave up waiting: ' . $failure->getMessage());
            }
            throw ConnectionException::ofCurl($number, $failure->getMessage(), $request->url);
        }
        $headers = [];
        foreach ($answer->getHeaders() as $name => $values) {
            $headers[strtolower((string) $name)] = implode(', ', $values);
        }
        $head = new Response($answer->getStatusCode(), $headers);
        $limit = $head->status >= 400 ? self::ERROR_MAX : self::ANSWER_MAX;
        $body = '';
        try {
            $stream = $answer->getBody();
            while (!$stream->eof() && \strlen($body) <= $limit) {
                $body .= $stream->read(65536);
            }
        } catch (\RuntimeException $failure) {
            throw UnexpectedResponseException::truncated($head, $failure->getMessage());
        }
        if (\strlen($body) > $limit && $head->status < 400) {
            throw UnexpectedResponseException::tooLarge($head, $limit);
        }

        return new Response($head->status, $headers, substr($body, 0, $limit));
    }
}
