<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** A limit of the account's plan is reached. Retrying does not help before `resetsAt`. */
class PlanLimitException extends ApiException
{
    public readonly ?string $upgradeUrl;
    /** The limit's name, for example `daily`. */
    public readonly ?string $limit;
    public readonly ?int $used;
    public readonly ?int $cap;
    public readonly ?string $resetsAt;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $number = fn (string $name): ?int => \is_int($this->details[$name] ?? null) ? $this->details[$name] : null;
        $this->upgradeUrl = $this->text('upgrade_url');
        $this->limit = $this->text('limit');
        $this->used = $number('used');
        $this->cap = $number('cap');
        $this->resetsAt = $this->text('resets_at');
    }
}
