<?php

declare(strict_types=1);

namespace Postrider\Laravel\Tests;

use Illuminate\Bus\BusServiceProvider;
use Illuminate\Config\Repository;
use Illuminate\Filesystem\FilesystemServiceProvider;
use Illuminate\Foundation\Application as Laravel;
use Illuminate\Http\Request;
use Illuminate\Mail\MailServiceProvider;
use Illuminate\Notifications\NotificationServiceProvider;
use Illuminate\Support\Facades\Facade;
use Illuminate\View\ViewServiceProvider;
use Postrider\Laravel\PostriderServiceProvider;

/** An application of Laravel with this package and what it needs. */
final class Application
{
    /** @param array<string, mixed> $postrider */
    public static function make(array $postrider): Laravel
    {
        $app = new Laravel(sys_get_temp_dir());
        $app->instance('config', new Repository([
            'app' => ['name' => 'Test', 'locale' => 'en'],
            'mail' => ['default' => 'postrider', 'from' => ['address' => 'ada@example.com', 'name' => 'Ada']],
            'view' => ['paths' => [], 'compiled' => sys_get_temp_dir()],
            'postrider' => $postrider,
        ]));
        Facade::clearResolvedInstances();
        Facade::setFacadeApplication($app);
        $app->instance('log', new \Psr\Log\NullLogger());
        $app->instance('request', Request::create('http://localhost/'));
        $providers = [BusServiceProvider::class, FilesystemServiceProvider::class, ViewServiceProvider::class,
            MailServiceProvider::class, NotificationServiceProvider::class, PostriderServiceProvider::class];
        foreach ($providers as $provider) {
            $app->register($provider);
        }
        $app->boot();

        return $app;
    }
}
