<?php

declare(strict_types=1);

namespace Postrider\Tests;

/** Runs fault_server.php. */
final class FaultServer
{
    public readonly int $port;
    public readonly string $url;
    /** @var resource */
    private $process;
    /** @var array<int, resource> */
    private array $pipes = [];

    /** @param list<array<string, mixed>> $answers */
    public function __construct(array $answers, string $certificate = '')
    {
        $command = [PHP_BINARY, __DIR__ . '/fault_server.php', (string) json_encode($answers), $certificate];
        $this->process = proc_open($command, [1 => ['pipe', 'w']], $this->pipes);
        $this->port = (int) fgets($this->pipes[1]);
        $this->url = ($certificate === '' ? 'http' : 'https') . "://127.0.0.1:$this->port";
    }

    /** @return array{method: string, path: string, headers: array<string, string>, body: string, connection: int} */
    public function request(): array
    {
        return json_decode((string) fgets($this->pipes[1]), true);
    }

    /** Requests that came and were not read by `request`. */
    public function requestsLeft(): int
    {
        proc_terminate($this->process);
        $rest = (string) stream_get_contents($this->pipes[1]);

        return substr_count($rest, "\n");
    }

    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
    }
}
