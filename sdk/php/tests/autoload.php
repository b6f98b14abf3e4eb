<?php

declare(strict_types=1);

// Loads the classes of the SDK, and those of Debian's packages, without Composer.
spl_autoload_register(static function (string $class): void {
    $file = match (true) {
        str_starts_with($class, 'Postrider\\Tests\\') => __DIR__ . '/' . substr($class, 16),
        
        str_starts_with($class, 'Postrider\\') => __DIR__ . '/../src/' . substr($class, 10),
        default => '',
    };
    $file = str_replace('\\', '/', $file) . '.php';
    if (is_file($file)) {
        require $file;
    }
});
