<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\UnexpectedResponseException;

/**
 * Reads events from one connection (server-sent events).
 *
 * @internal
 */
final class EventStream
{
    private const SILENCE = 60.0;
    private const EVENT_MAX = 1024 * 1024;

    public bool $hasConnected = false;

    /**
     * @param \Closure(?string): Request    $build
     * @param \Closure(Response): Response  $redact
     * @param ?string                       $cursor the last `id` that came, also one without an event
     */
    public function __construct(
        private readonly CurlTransport $transport,
        private readonly \Closure $build,
        private readonly \Closure $redact,
        public ?string $cursor,
    ) {
    }

    /**
     * Ends, or throws, when the connection is lost.
     *
     * @param (callable(): bool)|null $cancelled
     *
     * @return \Generator<int, WebhookEvent>
     */
    public function read(?callable $cancelled): \Generator
    {
        $buffer = '';
        $head = new Response(0);
        foreach ($this->transport->exchange(($this->build)($this->cursor), null, self::SILENCE, $cancelled) as $part) {
            if ($part instanceof Response) {
                $head = $part;
                $this->hasConnected = $this->hasConnected || self::isStream($head);
                continue;
            }
            $buffer .= $part;
            if (!self::isStream($head)) {
                if (\strlen($buffer) > Transport::ERROR_MAX) {
                    break;
                }
                continue;
            }
            $blocks = preg_split('/\r\n\r\n|\n\n|\r\r/', $buffer) ?: [];
            $buffer = (string) array_pop($blocks);
            foreach ([...$blocks, $buffer] as $block) {
                if (\strlen($block) > self::EVENT_MAX) {
                    throw UnexpectedResponseException::tooLarge($head, self::EVENT_MAX);
                }
            }
            foreach ($blocks as $block) {
                $event = $this->parse($block);
                if ($event !== null) {
                    yield $event;
                }
            }
        }
        if (!self::isStream($head)) {
            throw Failure::of(($this->redact)(new Response($head->status, $head->headers, $buffer)));
        }
    }

    private static function isStream(Response $head): bool
    {
        return $head->status === 200 && str_starts_with($head->header('content-type') ?? '', 'text/event-stream');
    }

    private function parse(string $block): ?WebhookEvent
    {
        $data = [];
        foreach (preg_split('/\r\n|\n|\r/', $block) ?: [] as $line) {
            if (preg_match('/^(id|data):? ?(.*)$/Ds', $line, $found) === 1) {
                $found[1] === 'id' ? $this->cursor = $found[2] : $data[] = $found[2];
            }
        }
        return $data === [] ? null : WebhookEvent::fromJson(implode("\n", $data), $this->cursor);
    }
}
