<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * API keys.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateApiKeyParams from Types
 * @phpstan-import-type CreateApiKeyResponse from Types
 * @phpstan-import-type ListApiKeysParams from Types
 * @phpstan-import-type ApiKey from Types
 * @phpstan-import-type GetApiKeyResponse from Types
 * @phpstan-import-type UpdateApiKeyParams from Types
 * @phpstan-import-type UpdateApiKeyResponse from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type RotateApiKeyParams from Types
 * @phpstan-import-type RotateApiKeyResponse from Types
 */
final class ApiKeys
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Create an API key; its secret is shown once.
     *
     * Fields of `$params`:
     * - `name` (required): The name
     * - `domain_id`: The only domain (`dom_…`) that the credential may send from; null allows all
     * - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
     * - `expires_at`: When the credential expires
     * - `policy`: The rules for the client below its scope
     * - `scope` (required): The scope
     *
     * @param CreateApiKeyParams $params
     * @param Options $options
     *
     * @return CreateApiKeyResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'apiKeys.create',
            'POST',
            '/api-keys',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List API keys, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param ListApiKeysParams $params
     * @param Options $options
     *
     * @return Page<ApiKey>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'apiKeys.list',
            'GET',
            '/api-keys',
            query: ['limit', 'cursor'],
            pages: 'api_keys',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get an API key.
     *
     * @param string $id The API key's id (`key_…`)
     * @param Options $options
     *
     * @return GetApiKeyResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'apiKeys.get',
            'GET',
            '/api-keys/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Rename, enable or disable an API key, or set its allowed addresses.
     *
     * Fields of `$params`:
     * - `name`: The name
     * - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
     * - `enabled`: Whether the credential is enabled
     * - `policy`: The rules for the client below its scope; null removes all rules
     *
     * @param string $id The API key's id (`key_…`)
     * @param UpdateApiKeyParams $params
     * @param Options $options
     *
     * @return UpdateApiKeyResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'apiKeys.update',
            'PATCH',
            '/api-keys/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Delete an API key.
     *
     * @param string $id The API key's id (`key_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'apiKeys.delete',
            'DELETE',
            '/api-keys/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Rotate an API key's secret; the previous one stays valid for a grace period.
     *
     * Fields of `$params`:
     * - `grace_hours`: For how many hours the previous secret stays valid
     *
     * @param string $id The API key's id (`key_…`)
     * @param RotateApiKeyParams $params
     * @param Options $options
     *
     * @return RotateApiKeyResponse
     */
    public function rotate(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'apiKeys.rotate',
            'POST',
            '/api-keys/{id}/rotate',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
