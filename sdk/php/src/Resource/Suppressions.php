<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Addresses that get no email.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ListSuppressionsParams from Types
 * @phpstan-import-type Suppression from Types
 * @phpstan-import-type CreateSuppressionParams from Types
 * @phpstan-import-type CreateSuppressionResponse from Types
 * @phpstan-import-type CheckSuppressionsParams from Types
 * @phpstan-import-type CheckSuppressionsResponse from Types
 * @phpstan-import-type ImportSuppressionsParams from Types
 * @phpstan-import-type ImportSuppressionsResponse from Types
 * @phpstan-import-type DryRunSuppressionImportParams from Types
 * @phpstan-import-type DryRunSuppressionImportResponse from Types
 * @phpstan-import-type ListSuppressionImportsParams from Types
 * @phpstan-import-type SuppressionImport from Types
 * @phpstan-import-type OneImport from Types
 * @phpstan-import-type ExportSuppressionsParams from Types
 * @phpstan-import-type OneSuppression from Types
 * @phpstan-import-type DeleteSuppressionParams from Types
 * @phpstan-import-type DeleteSuppressionResponse from Types
 */
final class Suppressions
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List suppressions, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `email`: An address, or `@domain.tld`
     * - `reason`: Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe,
     *   smtp_failure, manual, import
     * - `source`: Any of these sources, separated by commas: system, api, dashboard, recipient, import
     * - `created_after`: Only those created after this time
     * - `created_before`: Only those created before this time
     *
     * @param ListSuppressionsParams $params
     * @param Options $options
     *
     * @return Page<Suppression>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'suppressions.list',
            'GET',
            '/suppressions',
            query: ['limit', 'cursor', 'email', 'reason', 'source', 'created_after', 'created_before'],
            pages: 'suppressions',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Create suppressions.
     *
     * Fields of `$params`:
     * - `email`: An address, or `@domain.tld`
     * - `emails`: Several addresses or domains
     * - `note`: Free text
     * - `expires_at`: Expiry; never if omitted
     *
     * @param CreateSuppressionParams $params
     * @param Options $options
     *
     * @return CreateSuppressionResponse
     */
    public function create(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'suppressions.create',
            'POST',
            '/suppressions',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Check whether addresses are suppressed.
     *
     * @param CheckSuppressionsParams $params
     * @param Options $options
     *
     * @return CheckSuppressionsResponse
     */
    public function check(array $params, array $options = []): array
    {
        $operation = new Operation(
            'suppressions.check',
            'POST',
            '/suppressions/check',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Import suppressions from CSV.
     *
     * Fields of `$params`:
     * - `csv` (required): The list: CSV with a column of addresses, with or without a header line
     *
     * @param ImportSuppressionsParams $params
     * @param Options $options
     *
     * @return ImportSuppressionsResponse
     */
    public function import(array $params, array $options = []): array
    {
        $operation = new Operation(
            'suppressions.import',
            'POST',
            '/suppressions/import',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Show what an import of suppressions would do.
     *
     * Fields of `$params`:
     * - `csv` (required): The list: CSV with a column of addresses, with or without a header line
     *
     * @param DryRunSuppressionImportParams $params
     * @param Options $options
     *
     * @return DryRunSuppressionImportResponse
     */
    public function dryRunImport(array $params, array $options = []): array
    {
        $operation = new Operation(
            'suppressions.dryRunImport',
            'POST',
            '/suppressions/import/dry-run',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List imports, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param ListSuppressionImportsParams $params
     * @param Options $options
     *
     * @return Page<SuppressionImport>
     */
    public function listImports(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'suppressions.listImports',
            'GET',
            '/suppressions/import',
            query: ['limit', 'cursor'],
            pages: 'imports',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get the progress of an import.
     *
     * @param string $id The import's id (`imp_…`)
     * @param Options $options
     *
     * @return OneImport
     */
    public function getImport(string $id, array $options = []): array
    {
        $operation = new Operation(
            'suppressions.getImport',
            'GET',
            '/suppressions/import/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Export suppressions as CSV.
     *
     * Fields of `$params`:
     * - `email`: An address, or `@domain.tld`
     * - `reason`: Any of these reasons, separated by commas: hard_bounce, soft_bounce, complaint, unsubscribe,
     *   smtp_failure, manual, import
     * - `source`: Any of these sources, separated by commas: system, api, dashboard, recipient, import
     * - `created_after`: Only those created after this time
     * - `created_before`: Only those created before this time
     *
     * @param ExportSuppressionsParams $params
     * @param Options $options
     *
     * @return string the bytes of text/csv; charset=utf-8
     */
    public function export(array $params = [], array $options = []): string
    {
        $operation = new Operation(
            'suppressions.export',
            'GET',
            '/suppressions/export',
            query: ['email', 'reason', 'source', 'created_after', 'created_before'],
            accept: 'text/csv; charset=utf-8',
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * Get a suppression.
     *
     * @param string $idOrEmail The suppression's id (`sup_…`), or the address
     * @param Options $options
     *
     * @return OneSuppression
     */
    public function get(string $idOrEmail, array $options = []): array
    {
        $operation = new Operation(
            'suppressions.get',
            'GET',
            '/suppressions/{id_or_email}',
            retry: true,
        );

        return $this->client->call($operation, [$idOrEmail], [], $options);
    }

    /**
     * Delete a suppression.
     *
     * Fields of `$params`:
     * - `force`: Also delete a suppression caused by a complaint
     *
     * @param string $idOrEmail The suppression's id (`sup_…`), or the address
     * @param DeleteSuppressionParams $params
     * @param Options $options
     *
     * @return DeleteSuppressionResponse
     */
    public function delete(string $idOrEmail, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'suppressions.delete',
            'DELETE',
            '/suppressions/{id_or_email}',
            query: ['force'],
            retry: true,
        );

        return $this->client->call($operation, [$idOrEmail], $params, $options);
    }
}
