<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Credentials for sending by SMTP.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateSmtpCredentialParams from Types
 * @phpstan-import-type CreateSmtpCredentialResponse from Types
 * @phpstan-import-type ListSmtpCredentialsParams from Types
 * @phpstan-import-type SmtpCredential from Types
 * @phpstan-import-type GetSmtpCredentialResponse from Types
 * @phpstan-import-type UpdateSmtpCredentialParams from Types
 * @phpstan-import-type UpdateSmtpCredentialResponse from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type RotateSmtpCredentialParams from Types
 * @phpstan-import-type RotateSmtpCredentialResponse from Types
 */
final class SmtpCredentials
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Create an SMTP credential; its password is shown once.
     *
     * Fields of `$params`:
     * - `name` (required): The name
     * - `domain_id`: The only domain (`dom_…`) that the credential may send from; null allows all
     * - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
     * - `expires_at`: When the credential expires
     * - `policy`: The rules for the client below its scope
     *
     * @param CreateSmtpCredentialParams $params
     * @param Options $options
     *
     * @return CreateSmtpCredentialResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'smtpCredentials.create',
            'POST',
            '/smtp-credentials',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List SMTP credentials, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     *
     * @param ListSmtpCredentialsParams $params
     * @param Options $options
     *
     * @return Page<SmtpCredential>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'smtpCredentials.list',
            'GET',
            '/smtp-credentials',
            query: ['limit', 'cursor'],
            pages: 'smtp_credentials',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get an SMTP credential.
     *
     * @param string $id The SMTP credential's id (`smtp_…`)
     * @param Options $options
     *
     * @return GetSmtpCredentialResponse
     */
    public function get(string $id, array $options = []): array
    {
        $operation = new Operation(
            'smtpCredentials.get',
            'GET',
            '/smtp-credentials/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Rename, enable or disable an SMTP credential, or set its allowed addresses.
     *
     * Fields of `$params`:
     * - `name`: The name
     * - `allowed_ips`: Addresses and networks that may use the credential; empty allows all
     * - `enabled`: Whether the credential is enabled
     * - `policy`: The rules for the client below its scope; null removes all rules
     *
     * @param string $id The SMTP credential's id (`smtp_…`)
     * @param UpdateSmtpCredentialParams $params
     * @param Options $options
     *
     * @return UpdateSmtpCredentialResponse
     */
    public function update(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'smtpCredentials.update',
            'PATCH',
            '/smtp-credentials/{id}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$id], $params, $options);
    }

    /**
     * Delete an SMTP credential.
     *
     * @param string $id The SMTP credential's id (`smtp_…`)
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $id, array $options = []): array
    {
        $operation = new Operation(
            'smtpCredentials.delete',
            'DELETE',
            '/smtp-credentials/{id}',
            retry: true,
        );

        return $this->client->call($operation, [$id], [], $options);
    }

    /**
     * Rotate an SMTP credential's password; the previous one stays valid for a grace period.
     *
     * Fields of `$params`:
     * - `grace_hours`: For how many hours the previous secret stays valid
     *
     * @param string $id The SMTP credential's id (`smtp_…`)
     * @param RotateSmtpCredentialParams $params
     * @param Options $options
     *
     * @return RotateSmtpCredentialResponse
     */
    public function rotate(string $id, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'smtpCredentials.rotate',
            'POST',
            '/smtp-credentials/{id}/rotate',
            body: 'application/json',
        );

        return $this->client->call($operation, [$id], $params, $options);
    }
}
