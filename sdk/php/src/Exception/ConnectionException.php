<?php

declare(strict_types=1);

namespace Postrider\Exception;

/** No answer came. */
class ConnectionException extends PostriderException
{
    /** Numbers of curl for errors of the certificate, which do not go away by themselves. */
    private const CERTIFICATE = [51, 58, 59, 60, 77, 82, 83, 90, 91, 98];

    /**
     * @param 'dns'|'refused'|'reset'|'tls'|'other' $reason
     * @param bool                                  $unsent    whether the request certainly did not reach the server
     * @param bool                                  $permanent whether trying again cannot help
     */
    public function __construct(
        string $message,
        public readonly string $reason,
        public readonly bool $unsent = false,
        public readonly bool $permanent = false,
    ) {
        parent::__construct($message);
    }

    /** @param int $number an error number of curl */
    public static function ofCurl(int $number, string $message, string $url): self
    {
        $host = parse_url($url, PHP_URL_HOST) . (parse_url($url, PHP_URL_PORT) ? ':' . parse_url($url, PHP_URL_PORT) : '');
        $reason = match (true) {
            \in_array($number, [5, 6], true) => 'dns',
            $number === 7 => 'refused',
            \in_array($number, [...self::CERTIFICATE, 35, 53, 54, 64, 66, 80], true) => 'tls',
            \in_array($number, [16, 52, 55, 56, 92, 95], true) => 'reset',
            default => 'other',
        };
        $permanent = \in_array($number, self::CERTIFICATE, true);
        $sentence = match ($permanent ? 'certificate' : $reason) {
            'dns' => "The name of $host cannot be resolved: check the base URL.",
            'refused' => "Nothing accepts connections at $host: check the base URL and that the server runs.",
            'certificate' => "The certificate of $host is not trusted: check the host name in the base URL, or give the "
                . 'certificate of your own authority as `caFile`.',
            'tls' => "$host does not speak TLS: check scheme and port of the base URL.",
            'reset' => "$host closed the connection without an answer.",
            'other' => "The call of $host failed.",
        };

        return new self("$sentence ($message)", $reason, \in_array($reason, ['dns', 'refused', 'tls'], true), $permanent);
    }
}
