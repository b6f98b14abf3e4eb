<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** A limit of the account's plan is reached. Retries do not help before it is reset. */
class PlanLimitException extends ApiException
{
    /** The limit's name, for example `daily`. */
    public readonly ?string $limit;
    /** How much of it is used. */
    public readonly ?int $used;
    /** How much the plan has. */
    public readonly ?int $cap;
    /** When it is reset, in ISO 8601. */
    public readonly ?string $resetsAt;
    /** Where the plan can be changed. */
    public readonly ?string $upgradeUrl;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->limit = \is_string($value = $this->details['limit'] ?? $error['limit'] ?? null) ? $value : null;
        $this->used = \is_int($value = $this->details['used'] ?? null) ? $value : null;
        $this->cap = \is_int($value = $this->details['cap'] ?? null) ? $value : null;
        $this->resetsAt = \is_string($value = $this->details['resets_at'] ?? $error['resets_at'] ?? null) ? $value : null;
        $this->upgradeUrl = \is_string($value = $this->details['upgrade_url'] ?? $error['upgrade_url'] ?? null) ? $value : null;
    }
}
