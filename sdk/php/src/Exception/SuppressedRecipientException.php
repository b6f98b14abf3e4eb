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
        $this->suppressed = $this->addresses('suppressed', 'category_unsubscribed');
        $this->category = $this->text('category');
        $this->emailId = $this->text('email_id');
    }
}
