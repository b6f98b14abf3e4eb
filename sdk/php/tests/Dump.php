<?php

declare(strict_types=1);

namespace Postrider\Tests;

/** All that logs and debuggers could show of an exception. */
final class Dump
{
    public static function of(\Throwable $failure): string
    {
        $text = (string) $failure . print_r(get_object_vars($failure), true);
        foreach ($failure->getTrace() as $frame) {
            // Arguments of the tests themselves have all of PHPUnit in them.
            $class = $frame['class'] ?? '';
            if (str_starts_with($class, 'Postrider\\') && !str_starts_with($class, 'Postrider\\Tests\\')) {
                $text .= print_r($frame['args'] ?? [], true);
            }
        }

        return $failure->getPrevious() === null ? $text : $text . self::of($failure->getPrevious());
    }
}
