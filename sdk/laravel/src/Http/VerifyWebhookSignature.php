<?php

declare(strict_types=1);

namespace Postrider\Laravel\Http;

use Illuminate\Contracts\Config\Repository;
use Illuminate\Http\Request;
use Postrider\Exception\SignatureException;
use Postrider\Webhooks;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\HttpKernel\Exception\HttpException;

/** Lets only signed webhooks through, and gives their event to the request as the attribute `postrider.event`. */
final class VerifyWebhookSignature
{
    public const EVENT = 'postrider.event';

    public function __construct(private readonly Repository $config)
    {
    }

    public function handle(Request $request, \Closure $next): Response
    {
        $secrets = array_map(trim(...), explode(',', (string) $this->config->get('postrider.webhook.secret')));
        $tolerance = (int) $this->config->get('postrider.webhook.tolerance', 300);
        try {
            $event = Webhooks::constructEvent($request->getContent(), $request->headers->all(), $secrets, $tolerance);
        } catch (SignatureException $failure) {
            throw new HttpException(401, $failure->getMessage(), $failure);
        }
        $request->attributes->set(self::EVENT, $event);

        return $next($request);
    }
}
