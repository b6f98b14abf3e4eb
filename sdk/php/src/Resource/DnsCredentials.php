<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Saved credentials of DNS providers.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type SavedDnsCredentialsList from Types
 * @phpstan-import-type SaveDnsCredentialsParams from Types
 * @phpstan-import-type SaveDnsCredentialsResponse from Types
 * @phpstan-import-type Done from Types
 */
final class DnsCredentials
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * List the DNS providers with saved credentials.
     *
     * @param Options $options
     *
     * @return SavedDnsCredentialsList
     */
    public function list(array $options = []): array
    {
        $operation = new Operation(
            'dnsCredentials.list',
            'GET',
            '/dns-credentials',
            retry: true,
        );

        return $this->client->call($operation, [], [], $options);
    }

    /**
     * Save credentials for a DNS provider.
     *
     * Fields of `$params`:
     * - `credentials` (required): An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`,
     *   `region?`, `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`;
     *   rfc2136: `server`, `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`;
     *   dnsimple: `account_id`, `api_token`; gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger:
     *   `api_token`; infomaniak: `api_token`; ionos: `api_token`; linode: `api_token`; namecom: `username`,
     *   `api_token`; netlify: `api_token`; ns1: `api_token`; porkbun: `api_key`, `secret_api_key`; scaleway:
     *   `api_token`; vercel: `api_token`; vultr: `api_token`
     *
     * @param string $provider The provider
     * @param SaveDnsCredentialsParams $params
     * @param Options $options
     *
     * @return SaveDnsCredentialsResponse
     */
    public function save(string $provider, array $params, array $options = []): array
    {
        $operation = new Operation(
            'dnsCredentials.save',
            'PUT',
            '/dns-credentials/{provider}',
            maps: ['credentials'],
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$provider], $params, $options);
    }

    /**
     * Delete the credentials for a DNS provider.
     *
     * @param string $provider The provider
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $provider, array $options = []): array
    {
        $operation = new Operation(
            'dnsCredentials.delete',
            'DELETE',
            '/dns-credentials/{provider}',
            retry: true,
        );

        return $this->client->call($operation, [$provider], [], $options);
    }
}
