<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** An answer that is not the API's, for example a proxy's page. */
class UnexpectedResponseException extends PostriderException
{
    public readonly int $status;
    public readonly string $contentType;

    /** @param string $excerpt the beginning of the answer, at most 200 characters */
    public function __construct(
        string $message,
        public readonly Response $response,
        public readonly string $excerpt = '',
        /** Whether the connection was lost within the answer. */
        public readonly bool $truncated = false,
    ) {
        $this->status = $response->status;
        $this->contentType = $response->header('content-type') ?? '';
        parent::__construct($message);
    }

    public static function truncated(Response $head, string $reason): self
    {
        return new self("The answer (status $head->status) ended too early: $reason.", self::head($head), '', true);
    }

    public static function tooLarge(Response $head, int $limit): self
    {
        return new self("The answer is larger than $limit bytes and was not read.", self::head($head));
    }

    /** An answer that has no error of the API in it, and no result either. */
    public static function of(Response $response): self
    {
        $type = $response->header('content-type') ?? 'no content type';
        $status = $response->status;
        $location = $response->header('location');
        $message = match (true) {
            $status >= 300 && $status < 400 => "The server redirects (status $status) to "
                . ($location === null ? 'nowhere' : self::excerptOf($location))
                . '. Redirects are not followed: set the base URL to the final address.',
            $status === 413 => 'A proxy before the server refused the size of the request (status 413): raise its limit, '
                . 'or send less.',
            $status >= 500 => "A proxy answered (status $status, $type), not the API: check that the server runs.",
            $status >= 400 => "The answer (status $status, $type) is not the API's: check the base URL.",
            $response->body === '' => "The answer (status $status) is empty: check the base URL and the proxies before it.",
            default => "The answer (status $status, $type) is not the API's JSON: check the base URL.",
        };

        return new self($message, $response, self::excerptOf($response->body));
    }

    /** Without header fields that could repeat the request's. */
    private static function head(Response $head): Response
    {
        return new Response($head->status, array_intersect_key($head->headers, ['content-type' => 0, 'retry-after' => 0]));
    }

    private static function excerptOf(string $body): string
    {
        // JSON replaces bytes that are not UTF-8.
        $text = json_decode((string) json_encode(substr($body, 0, 2000), JSON_INVALID_UTF8_SUBSTITUTE));
        $text = preg_replace('/[\p{C}\s]+/u', ' ', (string) $text) ?? '';

        return preg_match('/^.{0,200}/us', trim($text), $found) === 1 ? $found[0] : '';
    }
}
