<?php

declare(strict_types=1);

namespace Postrider\Laravel\Events;

use Postrider\WebhookEvent;

/**
 * A webhook came, of whatever type. The classes of the types extend this one.
 *
 * @template-covariant TEvent of WebhookEvent = WebhookEvent
 */
class WebhookReceived
{
    /** @param TEvent $event */
    final public function __construct(public readonly WebhookEvent $event)
    {
    }
}
