<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Page;
use Postrider\Types;

/**
 * Sending and receiving domains.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CreateDomainParams from Types
 * @phpstan-import-type CreateDomainResponse from Types
 * @phpstan-import-type ListDomainsParams from Types
 * @phpstan-import-type Domain from Types
 * @phpstan-import-type OneDomain from Types
 * @phpstan-import-type UpdateDomainParams from Types
 * @phpstan-import-type UpdateDomainResponse from Types
 * @phpstan-import-type DeleteDomainParams from Types
 * @phpstan-import-type Done from Types
 * @phpstan-import-type GetDomainDmarcParams from Types
 * @phpstan-import-type GetDomainDmarcResponse from Types
 * @phpstan-import-type VerifiedDomain from Types
 */
final class Domains
{
    /** Rotation of a domain's DKIM key. */
    public readonly DomainsDkim $dkim;
    /** Claims on domains that another account has. */
    public readonly DomainsClaims $claims;
    /** Publishing of a domain's DNS records. */
    public readonly DomainsDns $dns;

    /** @internal */
    public function __construct(private readonly Client $client)
    {
        $this->dkim = new DomainsDkim($client);
        $this->claims = new DomainsClaims($client);
        $this->dns = new DomainsDns($client);
    }

    /**
     * Add a domain, and get the records to publish.
     *
     * Fields of `$params`:
     * - `name` (required): The domain, like `example.com` or a subdomain, `mail.example.com`
     * - `open_tracking`: Whether opens are tracked by a pixel in the HTML
     * - `click_tracking`: Whether links in the HTML are rewritten to track clicks
     * - `tls_mode`: `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS
     * - `inbound_enabled`: Whether mail to the domain is received
     * - `inbound_addresses`: Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
     *   (`*@example.com`); empty means all. `postmaster` always receives mail
     * - `tracking_host`: Your own host for tracking links; null uses the service's host
     * - `dkim_selector`: The selector of the RSA key; generated if omitted
     * - `dkim_private_key`: An existing RSA key of 2,048 to 4,096 bits in PEM; a new key is generated if omitted
     *
     * @param CreateDomainParams $params
     * @param Options $options
     *
     * @return CreateDomainResponse
     */
    public function create(array $params, array $options = []): array
    {
        $operation = new Operation(
            'domains.create',
            'POST',
            '/domains',
            body: 'application/json',
        );

        return $this->client->call($operation, [], $params, $options);
    }

    /**
     * List domains, newest first.
     *
     * Fields of `$params`:
     * - `limit`: Number of entries
     * - `cursor`: `next_cursor` of the previous page
     * - `status`: Filter by verification status
     * - `q`: Filter by text in the name
     *
     * @param ListDomainsParams $params
     * @param Options $options
     *
     * @return Page<Domain>
     */
    public function list(array $params = [], array $options = []): Page
    {
        $operation = new Operation(
            'domains.list',
            'GET',
            '/domains',
            query: ['limit', 'cursor', 'status', 'q'],
            pages: 'domains',
            retry: true,
        );

        return $this->client->page($operation, [], $params, $options);
    }

    /**
     * Get a domain and the status of its records.
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param Options $options
     *
     * @return OneDomain
     */
    public function get(string $idOrName, array $options = []): array
    {
        $operation = new Operation(
            'domains.get',
            'GET',
            '/domains/{id_or_name}',
            retry: true,
        );

        return $this->client->call($operation, [$idOrName], [], $options);
    }

    /**
     * Update a domain's settings.
     *
     * Fields of `$params`:
     * - `open_tracking`: Whether opens are tracked by a pixel in the HTML
     * - `click_tracking`: Whether links in the HTML are rewritten to track clicks
     * - `tls_mode`: `opportunistic`: TLS if the remote host offers it; `enforced`: never without TLS
     * - `inbound_enabled`: Whether mail to the domain is received
     * - `inbound_addresses`: Addresses that receive mail: `support@example.com`, sub-addresses (`support+*@example.com`) or all
     *   (`*@example.com`); empty means all. `postmaster` always receives mail
     * - `tracking_host`: Your own host for tracking links; null uses the service's host
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param UpdateDomainParams $params
     * @param Options $options
     *
     * @return UpdateDomainResponse
     */
    public function update(string $idOrName, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'domains.update',
            'PATCH',
            '/domains/{id_or_name}',
            body: 'application/json',
            retry: true,
        );

        return $this->client->call($operation, [$idOrName], $params, $options);
    }

    /**
     * Delete a domain.
     *
     * Fields of `$params`:
     * - `force`: Delete the domain even if emails from it are scheduled
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param DeleteDomainParams $params
     * @param Options $options
     *
     * @return Done
     */
    public function delete(string $idOrName, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'domains.delete',
            'DELETE',
            '/domains/{id_or_name}',
            query: ['force'],
            retry: true,
        );

        return $this->client->call($operation, [$idOrName], $params, $options);
    }

    /**
     * Get the records as a zone file.
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param Options $options
     *
     * @return string the bytes of text/plain; charset=utf-8
     */
    public function zoneFile(string $idOrName, array $options = []): string
    {
        $operation = new Operation(
            'domains.zoneFile',
            'GET',
            '/domains/{id_or_name}/zone-file',
            accept: 'text/plain; charset=utf-8',
            retry: true,
        );

        return $this->client->call($operation, [$idOrName], [], $options);
    }

    /**
     * Get a summary of the DMARC reports about a domain.
     *
     * Fields of `$params`:
     * - `from`: Start of the range, a time or a UTC date; extended to the start of its day. Default: 30 days before
     *   `to`. At most 92 days; reports are retained for thirteen months
     * - `to`: End of the range (exclusive), extended to the end of its day. Default: now
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param GetDomainDmarcParams $params
     * @param Options $options
     *
     * @return GetDomainDmarcResponse
     */
    public function dmarc(string $idOrName, array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'domains.dmarc',
            'GET',
            '/domains/{id_or_name}/dmarc',
            query: ['from', 'to'],
            retry: true,
        );

        return $this->client->call($operation, [$idOrName], $params, $options);
    }

    /**
     * Verify a domain's records now.
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param Options $options
     *
     * @return VerifiedDomain
     */
    public function verify(string $idOrName, array $options = []): array
    {
        $operation = new Operation(
            'domains.verify',
            'POST',
            '/domains/{id_or_name}/verify',
        );

        return $this->client->call($operation, [$idOrName], [], $options);
    }
}
