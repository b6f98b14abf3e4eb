<?php

declare(strict_types=1);

namespace Postrider\Tests;

use Postrider\Exception\PostriderException;
use Postrider\Request;
use Postrider\Response;
use Postrider\Transport;

/** Answers what a test gives it. */
final class FakeTransport implements Transport
{
    /** @var list<Request> */
    public array $requests = [];

    /** @param list<Response|PostriderException> $answers */
    public function __construct(private array $answers)
    {
    }

    public static function json(int $status, mixed $data, array $headers = []): Response
    {
        return new Response($status, $headers + ['content-type' => 'application/json'], (string) json_encode($data));
    }

    public static function error(int $status, string $code, array $more = [], array $headers = []): Response
    {
        return self::json($status, ['error' => ['message' => 'Refused', 'code' => $code] + $more], $headers);
    }

    public function send(Request $request, float $timeout, ?callable $cancelled = null): Response
    {
        $this->requests[] = $request;
        $answer = array_shift($this->answers) ?? throw new \LogicException('more requests than answers');

        return $answer instanceof Response ? $answer : throw $answer;
    }
}
