<?php

declare(strict_types=1);

namespace Postrider\Laravel\Tests;

use Illuminate\Notifications\Notification;

final class Welcome extends Notification
{
    public function via(): array
    {
        return ['postrider'];
    }

    public function toPostrider(): array
    {
        return ['subject' => 'Welcome', 'text' => 'Hello', 'tags' => ['flow' => 'welcome']];
    }
}
