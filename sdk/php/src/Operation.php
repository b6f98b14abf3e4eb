<?php

declare(strict_types=1);

namespace Postrider;

/**
 * How the SDK calls one operation of the API.
 *
 * @internal The generated resources make these.
 */
final class Operation
{
    /**
     * @param string       $path    with `{name}` for each path parameter
     * @param list<string> $query   names of the parameters that belong into the query
     * @param list<string> $repeated those whose list is a parameter for each value; other lists are joined by commas
     * @param list<string> $maps    fields of the body whose empty array is `{}` in JSON
     * @param ?string      $body    media type of the request's body; null for none
     * @param string       $accept  media type of the answer
     * @param ?string      $pages   field of the answer with the items of a page
     * @param bool         $retry   whether a call may be repeated although it may have been carried out
     */
    public function __construct(
        public readonly string $name,
        public readonly string $method,
        public readonly string $path,
        public readonly array $query = [],
        public readonly array $repeated = [],
        public readonly array $maps = [],
        public readonly ?string $body = null,
        public readonly string $accept = 'application/json',
        public readonly ?string $pages = null,
        public readonly bool $idempotent = false,
        public readonly bool $retry = false,
    ) {
    }
}
