<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * People who do not want a category of email.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListCategoryOptOutsParams from Types
 * @phpstan-import-type CategoryOptOut from Types
 * @phpstan-import-type CreateCategoryOptOutParams from Types
 * @phpstan-import-type CreateCategoryOptOutResponse from Types
 * @phpstan-import-type Done from Types
 */
final class CategoryOptOuts
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List opt-outs, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `email`: Filter by email address
     * - `category`: Filter by category: product, newsletter; several separated by commas
     *
     * @param ListCategoryOptOutsParams $params
     * @param Options $options
     *
     * @return Page<CategoryOptOut>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'categoryOptOuts.list',
            'GET',
            '/category-opt-outs',
            query: ['limit', 'cursor', 'email', 'category'],
            pages: 'category_opt_outs',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Opt an address out of a category.
     *
     * Fields of `$params`:
     * - `email` (required): The address
     * - `category` (required): The category
     *
     * @param CreateCategoryOptOutParams $params
     * @param Options $options
     *
     * @return CreateCategoryOptOutResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'categoryOptOuts.create',
            'POST',
            '/category-opt-outs',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Delete an opt-out.
     *
     * @param string $id The opt-out's id (`opt_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'categoryOptOuts.delete',
            'DELETE',
            '/category-opt-outs/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }
}
