<?php

declare(strict_types=1);

namespace Postrider\Laravel;

use Illuminate\Notifications\Notification;
use Postrider\Client;

/**
 * The notification channel `postrider`: sends what `toPostrider($notifiable)` of the notification returns, the params of
 * `emails.send`, for example `['template' => 'welcome', 'variables' => ['name' => 'Grace']]`.
 *
 * Recipients are those of `routeNotificationForPostrider` or of the mail channel, unless `to` is given. The notification's
 * id is the idempotency key: a queued notification that is tried again sends one email.
 */
final class PostriderChannel
{
    /** @param array{address?: ?string, name?: ?string} $from the sender if the notification has none */
    public function __construct(private readonly Client $client, private readonly array $from = [])
    {
    }

    /** @return ?array<string, mixed> the answer of the server; null if there is nobody to send to */
    public function send(mixed $notifiable, Notification $notification): ?array
    {
        $params = $notification->toPostrider($notifiable);
        $params['to'] ??= self::recipients($notifiable, $notification);
        if ($params['to'] === []) {
            return null;
        }
        // A template has a sender of its own.
        if (!isset($params['from']) && !isset($params['template']) && ($this->from['address'] ?? '') !== '') {
            $params['from'] = array_filter(['email' => $this->from['address'], 'name' => $this->from['name'] ?? null]);
        }
        $id = $notification->id ?? null;

        return $this->client->emails->send($params, $id === null ? [] : ['idempotency_key' => self::key($id, $params['to'])]);
    }

    /** @return list<string> */
    private static function recipients(mixed $notifiable, Notification $notification): array
    {
        $route = $notifiable->routeNotificationFor('postrider', $notification)
            ?? $notifiable->routeNotificationFor('mail', $notification);
        $addresses = [];
        foreach ((array) ($route ?? []) as $address => $name) {
            $addresses[] = \is_string($address) ? sprintf('"%s" <%s>', addcslashes((string) $name, '\\"'), $address) : $name;
        }

        return $addresses;
    }

    private static function key(string $id, mixed $to): string
    {
        return $id . ':' . hash('xxh64', (string) json_encode($to));
    }
}
