<?php

declare(strict_types=1);

// Loads Laravel from Composer's vendor folder, or from Debian's packages in the folder LARAVEL.
$composer = __DIR__ . '/../vendor/autoload.php';
require is_file($composer) ? $composer : (getenv('LARAVEL') ?: '/usr/share/php') . '/Illuminate/autoload.php';
spl_autoload_register(static function (string $class): void {
    $file = match (true) {
        str_starts_with($class, 'Postrider\\Tests\\') => __DIR__ . '/../../php/tests/' . substr($class, 16),
        str_starts_with($class, 'Postrider\\Laravel\\Tests\\') => __DIR__ . '/' . substr($class, 24),
        str_starts_with($class, 'Postrider\\Laravel\\') => __DIR__ . '/../src/' . substr($class, 18),
        str_starts_with($class, 'Postrider\\') => __DIR__ . '/../../php/src/' . substr($class, 10),
        default => '',
    };
    $file = str_replace('\\', '/', $file) . '.php';
    if (is_file($file)) {
        require $file;
    }
});
