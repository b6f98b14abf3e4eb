<?php

declare(strict_types=1);

namespace Postrider\Laravel;

use Illuminate\Contracts\Foundation\Application;
use Illuminate\Mail\MailManager;
use Illuminate\Notifications\ChannelManager;
use Illuminate\Support\Facades\Route;
use Illuminate\Support\ServiceProvider;
use Postrider\Client;
use Postrider\Laravel\Http\VerifyWebhookSignature;
use Postrider\Laravel\Http\WebhookController;

/** Adds the client, the mailer, the notification channel and the webhook route. */
final class PostriderServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__ . '/../config/postrider.php', 'postrider');
        $this->app->singleton(Client::class, static fn (Application $app): Client => new Client(
            $app['config']['postrider.api_key'],
            $app['config']['postrider.base_url'],
            timeout: (float) ($app['config']['postrider.timeout'] ?? 30),
            onWarning: static fn (string $warning, string $call) => $app['log']->warning("postrider $call: $warning"),
            userAgent: 'laravel/' . $app->version(),
        ));
        // MAIL_MAILER=postrider works without a change of config/mail.php.
        $this->app['config']->set('mail.mailers.postrider', ($this->app['config']['mail.mailers.postrider'] ?? [])
            + ['transport' => 'postrider']);
        $this->callAfterResolving('mail.manager', static function (MailManager $mail, Application $app): void {
            $mail->extend('postrider', static fn (): PostriderTransport => new PostriderTransport($app->make(Client::class)));
        });
        $this->callAfterResolving(ChannelManager::class, static function (ChannelManager $channels, Application $app): void {
            $channels->extend('postrider', static fn (): PostriderChannel => new PostriderChannel(
                $app->make(Client::class),
                $app['config']['mail.from'] ?? [],
            ));
        });
    }

    public function boot(): void
    {
        $this->publishes([__DIR__ . '/../config/postrider.php' => $this->app->configPath('postrider.php')], 'postrider-config');
        $path = $this->app['config']['postrider.webhook.path'];
        if (\is_string($path) && $path !== '' && !$this->app->routesAreCached()) {
            Route::post($path, WebhookController::class)
                ->middleware(VerifyWebhookSignature::class)
                ->name('postrider.webhook');
        }
    }
}
