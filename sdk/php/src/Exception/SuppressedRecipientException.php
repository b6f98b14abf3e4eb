<?php

declare(strict_types=1);

namespace Postrider\Exception;

use Postrider\Response;

/** A recipient is suppressed or has opted out of the category. The email was not sent. */
class SuppressedRecipientException extends ValidationException
{
    /** @var list<string> addresses that are suppressed or opted out */
    public readonly array $suppressed;
    /** The category that the recipients opted out of; null if they are suppressed for all mail. */
    public readonly ?string $category;
    /** The email, stored as failed. */
    public readonly ?string $emailId;

    public function __construct(Response $response, array $error)
    {
        parent::__construct($response, $error);
        $addresses = $this->details['suppressed'] ?? $this->details['category_unsubscribed'] ?? [];
        $this->suppressed = array_values(array_filter((array) $addresses, is_string(...)));
        $this->category = $this->text('category');
        $this->emailId = $this->text('email_id');
    }
}
