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
    public function __construct(public readonly Response $response, protected readonly array $error)
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

    protected function text(string $name): ?string
    {
        $value = $this->details[$name] ?? $this->error[$name] ?? null;

        return \is_string($value) ? $value : null;
    }

    protected function integer(string $name): ?int
    {
        return \is_int($this->details[$name] ?? null) ? $this->details[$name] : null;
    }

    /** @return list<string> of the first name that is there */
    protected function addresses(string ...$names): array
    {
        $found = array_intersect_key($this->details, array_flip($names));

        return array_values(array_filter((array) reset($found), is_string(...)));
    }

    /** @return array<string, string> */
    protected function messages(string $name): array
    {
        $sentence = static fn (mixed $one): string => \is_string($one) ? $one : (string) json_encode($one);

        return array_map($sentence, (array) ($this->details[$name] ?? []));
    }

    protected function header(string $name): ?int
    {
        return $this->response->integer($name);
    }

    protected function wait(): ?float
    {
        return $this->response->retryAfter(time());
    }
}
