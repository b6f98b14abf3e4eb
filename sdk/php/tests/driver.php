<?php

declare(strict_types=1);

// Answers each JSON line of standard input with one line.
require __DIR__ . '/autoload.php';

use Postrider\Client;
use Postrider\Exception\PostriderException;
use Postrider\Exception\SendUnconfirmedException;
use Postrider\WebhookEvent;
use Postrider\Webhooks;

$client = null;
$warnings = [];
$make = static function (array $new) use (&$warnings): Client {
    return new Client(
        $new['api_key'] ?? null,
        $new['base_url'] ?? null,
        timeout: ($new['timeout_ms'] ?? 30_000) / 1000,
        maxRetries: $new['max_retries'] ?? 2,
        onWarning: static function (string $warning) use (&$warnings): void {
            $warnings[] = $warning;
        },
    );
};
$snake = static fn (string $name): string => strtolower((string) preg_replace('/[A-Z]/', '_$0', $name));
$call = static function (array $request, string $name) use (&$client): mixed {
    $parts = explode('.', $name);
    $method = array_pop($parts);
    $resource = array_reduce($parts, static fn (object $parent, string $child): object => $parent->$child, $client);
    $options = $request['options'] ?? [];
    if (isset($options['timeout_ms'])) {
        $options['timeout'] = $options['timeout_ms'] / 1000;
    }
    if (isset($options['cancel_after_ms'])) {
        $end = microtime(true) + $options['cancel_after_ms'] / 1000;
        $options['cancelled'] = static fn (): bool => microtime(true) >= $end;
    }
    $arguments = ['options' => $options];
    foreach ((new ReflectionMethod($resource, $method))->getParameters() as $parameter) {
        if ($parameter->getName() === 'params') {
            $arguments['params'] = $request['params'] ?? [];
        }
    }

    return $resource->$method(...($request['path'] ?? []), ...$arguments);
};
$event = static fn (WebhookEvent $event): array => ['id' => $event->id, 'cursor' => $event->cursor] + $event->jsonSerialize();
$answer = static function (array $request) use (&$client, &$warnings, $make, $call, $event): array {
    $warnings = [];
    if (isset($request['new'])) {
        $client = $make($request['new']);

        return ['data' => null];
    }
    if (isset($request['call'])) {
        $data = $call($request, $request['call']);
        $last = $client->lastResponse();
        if (is_string($data) && !str_starts_with($last->header('content-type') ?? '', 'text/')) {
            $data = ['base64' => base64_encode($data)];
        }

        return ['data' => $data, 'headers' => $last->headers, 'request_id' => $last->requestId(), 'warnings' => $warnings];
    }
    if (isset($request['iterate'])) {
        $items = new LimitIterator($call($request, $request['iterate'])->getIterator(), 0, $request['count_max'] ?? -1);

        return ['data' => iterator_to_array($items, false)];
    }
    if (isset($request['verify'])) {
        $given = $request['verify'];
        $tolerance = $given['tolerance_s'] ?? 300;

        return ['data' => $event(Webhooks::constructEvent(
            $given['payload'],
            $given['headers'],
            $given['secrets'],
            $tolerance,
            $given['now'] ?? null,
        ))];
    }
    if (isset($request['test_header'])) {
        $given = $request['test_header'];
        $headers = Webhooks::generateTestHeader(
            $given['payload'],
            $given['secret'],
            $given['timestamp'] ?? null,
            $given['event_id'] ?? 'evt_test',
        );

        return ['data' => $headers];
    }
    if (isset($request['stream'])) {
        $events = $client->webhookEvents->stream(array_diff_key($request['stream'], ['count' => 0]));
        $read = [];
        foreach ($events as $one) {
            $read[] = $event($one);
            if (count($read) === $request['stream']['count']) {
                break;
            }
        }

        return ['data' => $read];
    }
    if (isset($request['resolve_unconfirmed'])) {
        try {
            $call($request['resolve_unconfirmed'], $request['resolve_unconfirmed']['call']);
        } catch (SendUnconfirmedException $failure) {
            return ['data' => $failure->resolve(($request['timeout_ms'] ?? 60_000) / 1000)];
        }
        throw new LogicException('the call did not fail with SendUnconfirmedException');
    }
    if (isset($request['wait_for_email'])) {
        $wanted = $request['wait_for_email'];
        $wanted['timeout'] = ($wanted['timeout_ms'] ?? 30_000) / 1000;

        return ['data' => $client->dev->waitForEmail($wanted)];
    }
    if (isset($request['last_response'])) {
        $last = $client->lastResponse();
        $limit = $last->rateLimit();

        return ['data' => ['status' => $last->status, 'request_id' => $last->requestId(), 'rate_limit' => $limit]];
    }
    throw new LogicException('unknown request');
};
while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true);
    try {
        $reply = ['ok' => $answer($request)];
    } catch (PostriderException $failure) {
        $error = ['class' => str_replace('Exception', 'Error', substr((string) strrchr($failure::class, '\\'), 1)),
            'message' => $failure->getMessage()];
        foreach (get_object_vars($failure) as $name => $value) {
            $error[$name === 'errorCode' ? 'code' : $snake($name)] ??= $value;
        }
        unset($error['response']);
        $reply = ['error' => $error];
    } catch (Throwable $failure) {
        $reply = ['error' => ['class' => $failure::class, 'message' => $failure->getMessage()]];
    }
    echo json_encode(['id' => $request['id']] + $reply, JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE), "\n";
}
