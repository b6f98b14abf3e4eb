<?php

declare(strict_types=1);

namespace Postrider\Bridge\Symfony;

use Postrider\Exception\ApiException;
use Symfony\Component\Mailer\Envelope;
use Symfony\Component\Mailer\Exception\ExceptionInterface;
use Symfony\Component\Mailer\SentMessage;
use Symfony\Component\Mime\Message;
use Symfony\Component\Mime\RawMessage;

/**
 * For transports: a message has the same idempotency key in each attempt to send it, until one succeeds or the API refuses
 * it. The key is in a header field of the message object, because Messenger stores the object again after a failed attempt,
 * and failover transports pass it on.
 */
trait KeepsIdempotencyKey
{
    public function send(RawMessage $message, ?Envelope $envelope = null): ?SentMessage
    {
        if (!$message instanceof Message) {
            return parent::send($message, $envelope);
        }
        $headers = $message->getHeaders();
        if (!$headers->has(AttemptKeyHeader::NAME)) {
            $headers->add(new AttemptKeyHeader());
        }
        try {
            $sent = parent::send($message, $envelope);
        } catch (ExceptionInterface $failure) {
            $cause = $failure->getPrevious();
            $isRefused = $cause instanceof ApiException && $cause->status < 500 && !\in_array($cause->status, [408, 409, 429], true);
            if ($isRefused) {
                $headers->remove(AttemptKeyHeader::NAME);
            }
            throw $failure;
        }
        $headers->remove(AttemptKeyHeader::NAME);

        return $sent;
    }
}
