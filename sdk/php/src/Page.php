<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\UnexpectedResponseException;

/**
 * One page of a list. As an array it is the answer (`$page['emails']`, `$page['has_more']`); `foreach` goes over the items
 * of this page and all later ones, which it fetches when they are needed.
 *
 * @template-covariant T of array<string, mixed>
 *
 * @implements \ArrayAccess<string, mixed>
 * @implements \IteratorAggregate<int, T>
 */
final class Page implements \ArrayAccess, \IteratorAggregate, \JsonSerializable
{
    /**
     * @internal
     *
     * @param \Closure(?string): array<string, mixed> $fetch
     * @param array<string, mixed>                    $answer
     * @param string                                  $field the field of the answer with the items
     */
    public function __construct(
        private readonly \Closure $fetch,
        private readonly array $answer,
        private readonly string $field,
        /** The position in the list. */
        private readonly int $number = 0,
        /** @var \ArrayObject<string, int> the position that each cursor of the list led to */
        private readonly \ArrayObject $seen = new \ArrayObject(),
    ) {
    }

    /** @return list<T> the items of this page */
    public function items(): array
    {
        return array_values((array) ($this->answer[$this->field] ?? []));
    }

    public function hasMore(): bool
    {
        return ($this->answer['has_more'] ?? false) === true && \is_string($this->answer['next_cursor'] ?? null);
    }

    /** @return ?self<T> null after the last page */
    public function next(): ?self
    {
        if (!$this->hasMore()) {
            return null;
        }
        $cursor = $this->answer['next_cursor'];
        $this->seen[$cursor] ??= $this->number;
        if ($this->seen[$cursor] < $this->number) {
            throw new UnexpectedResponseException('The server repeats a cursor, so the list would never end.', new Response(200));
        }

        return new self($this->fetch, ($this->fetch)($cursor), $this->field, $this->number + 1, $this->seen);
    }

    /** @return \Generator<int, T> */
    public function getIterator(): \Generator
    {
        $number = 0;
        for ($page = $this; $page !== null; $page = $page->next()) {
            foreach ($page->items() as $item) {
                yield $number++ => $item;
            }
        }
    }

    public function offsetExists(mixed $offset): bool
    {
        return isset($this->answer[$offset]);
    }

    public function offsetGet(mixed $offset): mixed
    {
        return $this->answer[$offset] ?? null;
    }

    public function offsetSet(mixed $offset, mixed $value): void
    {
        throw new \LogicException('A page cannot be changed.');
    }

    public function offsetUnset(mixed $offset): void
    {
        throw new \LogicException('A page cannot be changed.');
    }

    /** @return array<string, mixed> the answer */
    public function jsonSerialize(): array
    {
        return $this->answer;
    }
}
