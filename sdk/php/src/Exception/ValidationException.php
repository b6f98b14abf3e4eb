<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The request is not valid. */
class ValidationException extends ApiException
{
    /** @var array<string, string> Messages by the name of the field. */
    public readonly array $fields;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->fields = array_map(static fn (mixed $one): string => \is_string($one) ? $one : (string) json_encode($one), (array) ($this->details['fields'] ?? []));
    }
}
