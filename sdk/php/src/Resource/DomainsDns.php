<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Publishing of a domain's DNS records.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type ApplyDomainDnsParams from Types
 * @phpstan-import-type ApplyDomainDnsResponse from Types
 * @phpstan-import-type ConnectDns from Types
 */
final class DomainsDns
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Publish the records at a DNS provider.
     *
     * Fields of `$params`:
     * - `provider` (required): The DNS provider of the zone
     * - `credentials`: An object. cloudflare: `api_token`; route53: `access_key_id`, `secret_access_key`, `session_token?`,
     *   `region?`, `hosted_zone_id?`; digitalocean: `api_token`; hetzner: `api_token`; gandi: `api_token`;
     *   rfc2136: `server`, `key_name`, `algorithm?`, `secret`; bunny: `api_token`; desec: `api_token`;
     *   dnsimple: `account_id`, `api_token`; gcore: `api_token`; godaddy: `api_key`, `api_secret`; hostinger:
     *   `api_token`; infomaniak: `api_token`; ionos: `api_token`; linode: `api_token`; namecom: `username`,
     *   `api_token`; netlify: `api_token`; ns1: `api_token`; porkbun: `api_key`, `secret_api_key`; scaleway:
     *   `api_token`; vercel: `api_token`; vultr: `api_token`
     * - `use_saved`: Whether to use the saved credentials for the provider
     * - `dry_run`: Preview the changes without publishing them
     * - `merge_spf`: Whether to add the service's include to an existing SPF record
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param ApplyDomainDnsParams $params
     * @param Options $options
     *
     * @return ApplyDomainDnsResponse
     */
    public function apply(string $idOrName, array $params, array $options = []): array
    {
        $operation = new Operation(
            'domains.dns.apply',
            'POST',
            '/domains/{id_or_name}/dns/apply',
            maps: ['credentials'],
            body: 'application/json',
        );

        return $this->client->call($operation, [$idOrName], $params, $options);
    }

    /**
     * Get the URL of the DNS provider's page where the records are approved.
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param Options $options
     *
     * @return ConnectDns
     */
    public function connect(string $idOrName, array $options = []): array
    {
        $operation = new Operation(
            'domains.dns.connect',
            'POST',
            '/domains/{id_or_name}/dns/connect',
        );

        return $this->client->call($operation, [$idOrName], [], $options);
    }
}
