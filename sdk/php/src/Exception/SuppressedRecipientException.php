<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** Recipients are suppressed, or opted out of the category. The email was not sent. */
class SuppressedRecipientException extends ValidationException
{
    /** @var list<string> Addresses of these recipients. */
    public readonly array $suppressed;
    /** The category that they opted out of. */
    public readonly ?string $category;
    /** The stored email, which failed. */
    public readonly ?string $emailId;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $this->suppressed = array_values(array_filter((array) ($this->details['suppressed'] ?? $this->details['category_unsubscribed'] ?? []), is_string(...)));
        $this->category = \is_string($value = $this->details['category'] ?? $error['category'] ?? null) ? $value : null;
        $this->emailId = \is_string($value = $this->details['email_id'] ?? $error['email_id'] ?? null) ? $value : null;
    }
}
