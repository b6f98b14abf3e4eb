<?php

declare(strict_types=1);

namespace Postrider;

/** Time and chance for retries. Tests replace it. */
class Clock
{
    /** Unix time in seconds. */
    public function now(): int
    {
        return time();
    }

    /** Seconds of a clock that nobody sets. */
    public function monotonic(): float
    {
        return hrtime(true) / 1e9;
    }

    public function sleep(float $seconds): void
    {
        usleep((int) ($seconds * 1e6));
    }

    /** A number from 0 to 1. */
    public function random(): float
    {
        return random_int(0, 1_000_000) / 1_000_000;
    }
}
