<?php

declare(strict_types=1);

// Loads the classes of the SDK, and Debian's packages for the bridges, without Composer.
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
foreach (['Psr/Http/Client', 'Psr/Http/Message', 'Symfony/Component/Mailer', 'Symfony/Component/HttpClient', 'Nyholm/Psr7'] as $package) {
    if (stream_resolve_include_path("$package/autoload.php") !== false) {
        require_once "$package/autoload.php";
    }
}
