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
     * Waits for a message.
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
        $operation = new Operation('dev.waitForEmail', 'GET', '/messages', ['to', 'subject', 'wait'], retry: true);
        $params['wait'] = max(1, (int) ceil($timeout)) . 's';
        $answer = (array) $this->client->call($operation, [], $params, ['timeout' => $timeout + 5.0]);
        $message = $answer['messages'][0] ?? null;
        if (!\is_array($message)) {
            throw new TimeoutException("No such message came within $timeout s. Check `to` and `subject`, and that the "
                . 'server runs as `postrider dev`.');
        }

        return $message;
    }
}
