<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider;

/** Versions of this SDK and of the API that it speaks. */
final class Version
{
    public const SDK = '0.1.0';
    public const SERVICE = '2026-11-01';
}
