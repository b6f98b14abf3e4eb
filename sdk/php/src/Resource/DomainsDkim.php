<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Rotation of a domain's DKIM key.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type OneDomain from Types
 */
final class DomainsDkim
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Rotate the DKIM keys.
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param Options $options
     *
     * @return OneDomain
     */
    public function rotate(string $idOrName, array $options = []): array
    {
        $operation = new Operation(
            'domains.dkim.rotate',
            'POST',
            '/domains/{id_or_name}/dkim/rotate',
        );

        return $this->client->call($operation, [$idOrName], [], $options);
    }

    /**
     * Cancel a rotation whose keys do not sign yet.
     *
     * @param string $idOrName The domain's id (`dom_…`) or name
     * @param Options $options
     *
     * @return OneDomain
     */
    public function cancelRotation(string $idOrName, array $options = []): array
    {
        $operation = new Operation(
            'domains.dkim.cancelRotation',
            'DELETE',
            '/domains/{id_or_name}/dkim/rotate',
            retry: true,
        );

        return $this->client->call($operation, [$idOrName], [], $options);
    }
}
