<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The request is malformed. */
class ValidationException extends ApiException
{
    /**
     * What is wrong, by field.
     *
     * @var array<string, string>
     */
    public readonly array $fields;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $fields = $this->details['fields'] ?? [];
        $this->fields = \is_array($fields) ? array_map(self::sentence(...), $fields) : [];
    }

    private static function sentence(mixed $reason): string
    {
        return \is_string($reason) ? $reason : (string) json_encode($reason);
    }
}
