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
        $this->limit = $this->text('limit');
        $this->used = $this->integer('used');
        $this->cap = $this->integer('cap');
        $this->resetsAt = $this->text('resets_at');
        $this->upgradeUrl = $this->text('upgrade_url');
    }
}
