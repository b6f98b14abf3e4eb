<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Visits of the website.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type CountVisitsParams from Types
 * @phpstan-import-type VisitCounts from Types
 */
final class Visits
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Count visits and conversions by day and source.
     *
     * Fields of `$params`:
     * - `from`: Start: a timestamp, or a date in UTC. The first day is the one that contains it. Default: 30 days
     *   before `to`
     * - `to`: End, exclusive. Default: now, including today
     *
     * @param CountVisitsParams $params
     * @param Options $options
     *
     * @return VisitCounts
     */
    public function counts(array $params = [], array $options = []): array
    {
        $operation = new Operation(
            'visits.counts',
            'GET',
            '/visits',
            query: ['from', 'to'],
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }
}
