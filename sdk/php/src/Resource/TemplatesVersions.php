<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Published versions of a template.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListTemplateVersionsParams from Types
 * @phpstan-import-type TemplateVersion from Types
 * @phpstan-import-type GetTemplateVersionResponse from Types
 */
final class TemplatesVersions
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List versions, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param ListTemplateVersionsParams $params
     * @param Options $options
     *
     * @return Page<TemplateVersion>
     */
    public function list(string $idOrAlias, array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'templates.versions.list',
            'GET',
            '/templates/{id_or_alias}/versions',
            query: ['limit', 'cursor'],
            pages: 'versions',
            retry: true,
        );

        return $this->client->page($operation, [$idOrAlias], $params, $options);
    }

    /**
     * Get a version.
     *
     * @param string $idOrAlias The template's id (`tpl_…`) or alias
     * @param string $number The version's number
     * @param Options $options
     *
     * @return GetTemplateVersionResponse
     */
    public function get(string $idOrAlias, string $number, array $options = []): array
    {
        $operation = new Operation(
            'templates.versions.get',
            'GET',
            '/templates/{id_or_alias}/versions/{number}',
            retry: true,
        );

        return $this->client->call($operation, [$idOrAlias, $number], [], $options);
    }
}
