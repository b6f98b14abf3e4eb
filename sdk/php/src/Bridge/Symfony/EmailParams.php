<?php

declare(strict_types=1);

namespace Postrider\Bridge\Symfony;

use Symfony\Component\Mailer\Envelope;
use Symfony\Component\Mailer\Exception\TransportException;
use Symfony\Component\Mailer\Header\MetadataHeader;
use Symfony\Component\Mailer\Header\TagHeader;
use Symfony\Component\Mime\Address;
use Symfony\Component\Mime\Email;
use Symfony\Component\Mime\Header\HeaderInterface;
use Symfony\Component\Mime\Header\UnstructuredHeader;
use Symfony\Component\Mime\Part\DataPart;

/**
 * The params of `emails.send` for a message of Symfony.
 *
 * A tag `welcome` becomes the tag `welcome: true`, metadata become tags with their values. The header fields
 * `Idempotency-Key` and `Service-*` become options, with the names and values that they have in SMTP. Fields that the server
 * writes itself, such as `Message-ID` and `Date`, are left out.
 */
final class EmailParams
{
    /** Header fields that the server writes itself. They are left out. */
    private const OWN = ['from', 'to', 'cc', 'bcc', 'sender', 'subject', 'date', 'message-id', 'reply-to', 'return-path',
        'mime-version', 'content-type', 'content-transfer-encoding', 'content-disposition', 'content-id',
        'content-description', 'x-postrider-email-id'];

    /** @param array<string, mixed> $params */
    private function __construct(public readonly array $params, public readonly ?string $idempotencyKey)
    {
    }

    public static function of(Email $email, Envelope $envelope): self
    {
        if (\count($email->getFrom()) > 1) {
            throw new TransportException('An email can have only one author.');
        }
        $recipients = array_map(self::address(...), $envelope->getRecipients());
        $named = [];
        foreach ($email->getTo() as $one) {
            $named[self::address($one)] = self::text($one);
        }
        $copies = [];
        foreach (['cc' => $email->getCc(), 'bcc' => $email->getBcc()] as $name => $addresses) {
            // An envelope for other recipients, for example in a test, must not reach the ones of the header. Who is in
            // `To` needs no copy.
            $kept = array_filter($addresses, fn (Address $one): bool => \in_array(self::address($one), $recipients, true)
                && !isset($named[self::address($one)]));
            $copies[$name] = array_values(array_map(self::text(...), $kept));
            $recipients = array_diff($recipients, array_map(self::address(...), $kept));
        }
        $to = array_values(array_intersect_key($named, array_flip($recipients)));
        $others = array_values(array_unique(array_diff($recipients, array_keys($named))));
        if ($to === []) {
            // The API requires `to`. Those of `Bcc` would see each other.
            [$to, $copies['cc']] = [$copies['cc'], []];
        }
        if ($to === []) {
            $to = $others;
        } else {
            // As by SMTP, the others do not see who is only in the envelope.
            array_push($copies['bcc'], ...$others);
        }
        $html = self::body($email->getHtmlBody(), $email->getHtmlCharset());
        $parts = $email->getAttachments();
        $params = [
            'from' => self::text($email->getFrom()[0] ?? $envelope->getSender()),
            'to' => $to,
            'subject' => $email->getSubject(),
            'html' => $html === null ? null : self::withContentIds($html, $parts),
            'text' => self::body($email->getTextBody(), $email->getTextCharset()),
            'reply_to' => array_map(self::text(...), $email->getReplyTo()),
            'attachments' => array_map(
                static fn (DataPart $part): array => self::attachment($part, $html ?? ''),
                $parts,
            ),
        ] + $copies;
        [$fields, $tags, $options] = self::header($email);
        $params += ['headers' => $fields, 'tags' => $tags];
        ['idempotency_key' => $key, 'attempt_key' => $attempt] = $options + ['idempotency_key' => null, 'attempt_key' => null];
        unset($options['idempotency_key'], $options['attempt_key']);
        $params = $options + array_filter($params, static fn (mixed $one): bool => $one !== null && $one !== []);
        if ($attempt !== null) {
            // A message object that is changed and sent again is another email.
            $key ??= $attempt . '-' . hash('xxh64', (string) json_encode($params, JSON_PARTIAL_OUTPUT_ON_ERROR));
        }

        return new self($params, $key);
    }

    /** @return array{array<string, string>, list<array{name: string, value: string}>, array<string, mixed>} */
    private static function header(Email $email): array
    {
        $fields = $given = $tags = $options = [];
        foreach ($email->getHeaders()->all() as $header) {
            $name = strtolower($header->getName());
            if (\in_array($name, self::OWN, true)) {
                continue;
            }
            if (isset($given[$name]) && !$header instanceof TagHeader) {
                throw new TransportException("The header {$header->getName()} occurs more than once, which the API cannot send: "
                    . 'give it one value.');
            }
            $given[$name] = true;
            if ($header instanceof TagHeader) {
                $tags[str_replace(':', '-', $header->getValue())] ??= 'true';
            } elseif ($header instanceof MetadataHeader) {
                $tags[$header->getKey()] = $header->getValue();
            } elseif ($name === 'idempotency-key' || $name === 'service-idempotency-key') {
                $options['idempotency_key'] = self::value($header);
            } elseif ($header instanceof AttemptKeyHeader) {
                $options['attempt_key'] = $header->getValue();
            } elseif (\in_array($name, ['service-category', 'service-scheduled-at', 'service-template'], true)) {
                $options[strtr(substr($name, 8), '-', '_')] = self::value($header);
            } elseif ($name === 'service-unsubscribe') {
                $options['unsubscribe'] = strtolower(self::value($header)) === 'true';
            } elseif ($name === 'service-variables') {
                $options['variables'] = json_decode(self::value($header), false, 64)
                    ?? throw new TransportException('The header field Service-Variables must be JSON.');
            } else {
                $fields[$header->getName()] = self::value($header);
            }
        }
        $pairs = array_map(
            static fn (int|string $name, string $value): array => ['name' => (string) $name, 'value' => $value],
            array_keys($tags),
            array_values($tags),
        );

        return [$fields, $pairs, $options];
    }

    private static function value(HeaderInterface $header): string
    {
        $body = $header instanceof UnstructuredHeader ? $header->getBody() : $header->getBodyAsString();

        return trim((string) preg_replace('/\r?\n\s*/', ' ', (string) $body));
    }

    /** @return array<string, string> */
    private static function attachment(DataPart $part, string $html): array
    {
        $name = self::name($part);
        $attachment = [
            // Twig's `email.image()` names a file by its path.
            'name' => preg_replace('~^.*[/\\\\]~s', '', $name) ?: 'attachment',
            'content_type' => $part->getMediaType() . '/' . $part->getMediaSubtype(),
            'data' => base64_encode($part->getBody()),
        ];
        if ($part->getPreparedHeaders()->getHeaderBody('Content-Disposition') === 'inline') {
            // The HTML names an embedded file by its name or by its Content-ID, which is random if nobody has asked for it.
            $attachment['content_id'] = match (true) {
                str_contains($html, "cid:$name") => self::contentId($name),
                $part->hasContentId() => $part->getContentId(),
                default => null,
            };
        }

        return array_filter($attachment, is_string(...));
    }

    private static function name(DataPart $part): string
    {
        return $part->getPreparedHeaders()->getHeaderParameter('Content-Disposition', 'filename') ?: 'attachment';
    }

    /**
     * The HTML with the Content-IDs of files that it names by names which cannot be one.
     *
     * @param list<DataPart> $parts
     */
    private static function withContentIds(string $html, array $parts): string
    {
        $urls = [];
        foreach (array_map(self::name(...), $parts) as $name) {
            $urls["cid:$name"] = 'cid:' . self::contentId($name);
        }

        return strtr($html, $urls);
    }

    /** The name if the API takes it as Content-ID, else one that is the same in each attempt, unlike Symfony's. */
    private static function contentId(string $name): string
    {
        return preg_match('/^(?:(?![<>()\\\\"])[!-~]){1,200}$/D', $name) === 1 ? $name : hash('xxh128', $name) . '@symfony';
    }

    /** @param resource|string|null $body */
    private static function body(mixed $body, ?string $charset): ?string
    {
        $text = \is_resource($body) ? (string) stream_get_contents($body, null, 0) : $body;

        return $text === null || $charset === null || strtolower($charset) === 'utf-8'
            ? $text
            : mb_convert_encoding($text, 'UTF-8', $charset);
    }

    private static function address(Address $address): string
    {
        return $address->getAddress();
    }

    private static function text(Address $address): string
    {
        if ($address->getName() === '') {
            return $address->getAddress();
        }

        return '"' . addcslashes($address->getName(), '\\"') . '" <' . $address->getAddress() . '>';
    }
}
