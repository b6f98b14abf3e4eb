<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Client;

/** Runs `postrider dev` for all tests of a process. */
final class DevServer
{
    private static ?self $running = null;
    public readonly string $url;
    public readonly string $apiKey;
    /** @var resource */
    private $process;

    private function __construct(string $program, private readonly string $folder)
    {
        $any = '127.0.0.1:0';
        $command = [$program, 'dev', '--json', '--data-dir', $folder, '--api', $any, '--submission', $any, '--mx', $any];
        $this->process = proc_open($command, [1 => ['pipe', 'w'], 2 => ['file', "$folder.log", 'w']], $pipes);
        $ready = json_decode((string) fgets($pipes[1]), true);
        $this->url = $ready['api'] ?? throw new \RuntimeException((string) file_get_contents("$folder.log"));
        $this->apiKey = $ready['api_key'];
    }

    /** Skips the test if there is no server to run. */
    public static function get(): self
    {
        $program = getenv('POSTRIDER') ?: \dirname(__DIR__, 3) . '/target/debug/postrider';
        if (!is_executable($program)) {
            TestCase::markTestSkipped('no server to run: build postrider, or set POSTRIDER');
        }

        return self::$running ??= new self($program, sys_get_temp_dir() . '/postrider-php-' . bin2hex(random_bytes(6)));
    }

    public function client(): Client
    {
        return new Client($this->apiKey, $this->url);
    }

    /**
     * Waits until the email was delivered and returns its raw message.
     */
    public function rawOf(string $id): string
    {
        $client = $this->client();
        for ($turn = 0; $client->emails->get($id)['email']['status'] !== 'delivered' && $turn < 200; ++$turn) {
            usleep(50_000);
        }

        return $client->emails->raw($id);
    }

    public function __destruct()
    {
        proc_terminate($this->process);
        proc_close($this->process);
        exec('rm -rf ' . escapeshellarg($this->folder) . ' ' . escapeshellarg("$this->folder.log"));
    }
}
