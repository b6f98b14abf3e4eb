<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** An error that the API answered. */
class ApiException extends PostriderException
{
    public readonly int $status;
    /** The API's code, for example `validation_error`. */
    public readonly string $errorCode;
    public readonly ?string $requestId;
    public readonly ?string $docUrl;
    /** @var array<string, string> */
    public readonly array $headers;
    /** @var array<string, mixed> */
    public readonly array $details;

    /** @param array<string, mixed> $error the object `error` of the answer */
    public function __construct(public readonly Response $response, array $error)
    {
        $text = static fn (string $name): ?string => \is_string($error[$name] ?? null) ? $error[$name] : null;
        $this->status = $response->status;
        $this->headers = $response->headers;
        $this->errorCode = $text('code') ?? '';
        $this->requestId = $response->requestId() ?? $text('request_id');
        $this->docUrl = $text('doc_url');
        $this->details = \is_array($error['details'] ?? null) ? $error['details'] : [];
        $where = $this->errorCode === '' ? "status $this->status" : $this->errorCode;
        parent::__construct(($text('message') ?? 'The API refused the call.') . " ($where)");
    }
}
