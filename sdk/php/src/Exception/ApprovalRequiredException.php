<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** The policy of the client asks for an approval (202): nothing was done yet. The call is carried out, once, when a person approves it; `approvals.get` says what became of it. */
class ApprovalRequiredException extends ApiException
{
    /** The approval, `apr_…`. */
    public readonly ?string $approvalId;
    /** The page on which a person decides. */
    public readonly ?string $url;
    /** End of the time for a decision, in ISO 8601. */
    public readonly ?string $expiresAt;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->approvalId = \is_string($value = $this->details['approval_id'] ?? $error['approval_id'] ?? null) ? $value : null;
        $this->url = \is_string($value = $this->details['url'] ?? $error['url'] ?? null) ? $value : null;
        $this->expiresAt = \is_string($value = $this->details['expires_at'] ?? $error['expires_at'] ?? null) ? $value : null;
    }
}
