<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Resource;

use Postrider\Client;
use Postrider\Operation;
use Postrider\Types;

/**
 * Funnels over product events.
 *
 * @phpstan-import-type Options from Client
 * @phpstan-import-type GetFunnelParams from Types
 * @phpstan-import-type GetFunnelResponse from Types
 */
final class Funnels
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Get a funnel: how many people did a sequence of steps.
     *
     * Fields of `$params`:
     * - `steps` (required): The steps in order: event names and `visit`. For each person the first occurrence of a step counts
     * - `from`: Start of the range of the first step, a time or a UTC date. Default: 30 days before `to`
     * - `to`: End of the range (exclusive). Default: now
     * - `group_by`: Group by the source of the first visit, by `came_from` or by `signup_method`; at most 50 groups, the
     *   others as `(other)`
     *
     * @param GetFunnelParams $params
     * @param Options $options
     *
     * @return GetFunnelResponse
     */
    public function get(array $params, array $options = []): array
    {
        $operation = new Operation(
            'funnels.get',
            'GET',
            '/funnels',
            query: ['steps', 'from', 'to', 'group_by'],
            retry: true,
        );

        return $this->client->call($operation, [], $params, $options);
    }
}
