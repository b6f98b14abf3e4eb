<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\TimeoutException;

/** The inbox of `postrider dev`, for tests of applications. */
final class Dev
{
    /** @internal */
    public function __construct(private readonly Client $client)
    {
    }

    /**
     * Waits for a message and returns the newest that fits, with its text and HTML.
     *
     * @param array{to?: string, subject?: string, timeout?: float|int} $params timeout: seconds, 30 if not given
     *
     * @return array<string, mixed>
     *
     * @throws TimeoutException no such message came
     */
    public function waitForEmail(array $params = []): array
    {
        $timeout = (float) ($params['timeout'] ?? 30.0);
        $deadline = hrtime(true) / 1e9 + $timeout;
        $operation = new Operation('dev.waitForEmail', 'GET', '/messages', ['to', 'subject', 'wait'], retry: true);
        do {
            // The server waits for at most a minute.
            $wait = min(30.0, max(0.0, $deadline - hrtime(true) / 1e9));
            $params['wait'] = (int) ($wait * 1000) . 'ms';
            $answer = (array) $this->client->call($operation, [], $params, ['timeout' => $wait + 10.0]);
            if (isset($answer['messages'][0]['id'])) {
                $get = new Operation('dev.waitForEmail', 'GET', '/messages/{id}', retry: true);

                return (array) $this->client->call($get, [(string) $answer['messages'][0]['id']]);
            }
        } while (hrtime(true) / 1e9 < $deadline);
        throw new TimeoutException("No such message came within $timeout s. Check `to` and `subject`, and that the server "
            . 'runs as `postrider dev`.');
    }
}
