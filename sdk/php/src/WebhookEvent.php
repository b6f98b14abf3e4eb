<?php

declare(strict_types=1);

namespace Postrider;

/**
 * An event of the account. The types that this SDK knows have classes in `Postrider\Event`; others are of this class.
 *
 * @template-covariant TData of array<string, mixed> = array<string, mixed>
 */
class WebhookEvent implements \JsonSerializable
{
    /**
     * @param string  $id        the same for every delivery of the event
     * @param string  $createdAt when it happened, in ISO 8601
     * @param TData   $data
     * @param ?string $cursor    the event's place in the stream, to resume after it
     */
    final public function __construct(
        public readonly string $id,
        public readonly string $type,
        public readonly string $createdAt,
        public readonly array $data,
        public readonly ?string $cursor = null,
    ) {
    }

    /** @return ?self null if the text is no event */
    public static function fromJson(string $json, ?string $cursor = null): ?self
    {
        // As arrays, an empty list and an empty object are the same.
        $hasData = \is_object(json_decode($json, false, 128)->data ?? null);

        return $hasData ? self::fromArray(json_decode($json, true, 128), $cursor) : null;
    }

    /**
     * @param array<string, mixed> $event `type`, `created_at`, `data`, and `id` in the stream
     *
     * @return ?self null if this is no event
     */
    public static function fromArray(array $event, ?string $cursor = null): ?self
    {
        $type = $event['type'] ?? null;
        $data = $event['data'] ?? null;
        if (!\is_string($type) || !\is_array($data) || ($data !== [] && array_is_list($data))) {
            return null;
        }
        $id = $event['id'] ?? $data['event_id'] ?? '';
        $class = EventTypes::CLASSES[$type] ?? self::class;

        return new $class(\is_string($id) ? $id : '', $type, (string) ($event['created_at'] ?? ''), $data, $cursor);
    }

    /** @return array{type: string, created_at: string, data: TData} */
    public function jsonSerialize(): array
    {
        return ['type' => $this->type, 'created_at' => $this->createdAt, 'data' => $this->data];
    }
}
