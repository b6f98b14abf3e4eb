<?php

declare(strict_types=1);

namespace Postrider\Tests;

use Postrider\Clock;

/** A clock that sleeping moves. */
final class FakeClock extends Clock
{
    /** @var list<float> */
    public array $sleeps = [];
    private float $time = 1000.0;

    public function now(): int
    {
        return 1_767_261_600 + (int) $this->time;
    }

    public function monotonic(): float
    {
        return $this->time;
    }

    public function sleep(float $seconds): void
    {
        $this->sleeps[] = $seconds;
        $this->time += $seconds;
    }

    public function random(): float
    {
        return 0.5;
    }
}
