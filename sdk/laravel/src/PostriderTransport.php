<?php

declare(strict_types=1);

namespace Postrider\Laravel;

use Postrider\Bridge\Symfony\EmailParams;
use Postrider\Bridge\Symfony\KeepsIdempotencyKey;
use Postrider\Client;
use Postrider\Exception\ApprovalRequiredException;
use Postrider\Exception\PostriderException;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\SentMessage;
use Symfony\Component\Mailer\Transport\AbstractTransport;
use Symfony\Component\Mime\Email;
use Symfony\Component\Mime\MessageConverter;

/**
 * Sends Laravel's mail by `emails.send`. `getMessageId()` of the sent message is the email's id (`msg_…`), and the header
 * field `X-Postrider-Email-ID` of the original message, too, so that webhooks can be matched.
 */
final class PostriderTransport extends AbstractTransport
{
    use KeepsIdempotencyKey;

    private const ID_FIELD = 'X-Postrider-Email-ID';

    public function __construct(private readonly Client $client)
    {
        parent::__construct();
    }

    public function __toString(): string
    {
        return 'postrider';
    }

    protected function doSend(SentMessage $message): void
    {
        $original = $message->getOriginalMessage();
        $wanted = EmailParams::of(MessageConverter::toEmail($original), $message->getEnvelope());
        $options = $wanted->idempotencyKey === null ? [] : ['idempotency_key' => $wanted->idempotencyKey];
        try {
            $sent = $this->client->emails->send($wanted->params, $options);
        } catch (ApprovalRequiredException $held) {
            // No failure of the transport: the `failover` mailer must not send the email in another way.
            throw $held;
        } catch (PostriderException $failure) {
            throw new TransportException('Could not send the email: ' . $failure->getMessage(), 0, $failure);
        }
        $message->setMessageId($sent['id']);
        if ($original instanceof Email) {
            $original->getHeaders()->remove(self::ID_FIELD);
            $original->getHeaders()->addTextHeader(self::ID_FIELD, $sent['id']);
        }
    }
}
