<?php

declare(strict_types=1);

namespace Postrider\Laravel\Http;

use Illuminate\Contracts\Events\Dispatcher;
use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Postrider\Laravel\Events;
use Postrider\WebhookEvent;

/**
 * Dispatches the event of a webhook: `WebhookReceived` for each, and the class of its type, for example `EmailBounced`. An
 * event can come more than once; its id stays the same.
 */
final class WebhookController
{
    public function __invoke(Request $request, Dispatcher $events): Response
    {
        /** @var WebhookEvent $event */
        $event = $request->attributes->get(VerifyWebhookSignature::EVENT);
        $events->dispatch(new Events\WebhookReceived($event));
        $class = Events\EventClasses::CLASSES[$event->type] ?? null;
        if ($class !== null) {
            $events->dispatch(new $class($event));
        }

        return new Response('', 204);
    }
}
