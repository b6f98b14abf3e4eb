<?php

declare(strict_types=1);

namespace Postrider\Tests;

use PHPUnit\Framework\TestCase;
use Postrider\Webhooks;

/** Runs the examples of README.md. */
final class ReadmeTest extends TestCase
{
    private const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=';

    /** @return list<string> */
    private static function examples(): array
    {
        preg_match_all('/^```php\n(.*?)^```/ms', (string) file_get_contents(__DIR__ . '/../README.md'), $found);

        return $found[1];
    }

    private static function program(string $code): string
    {
        $file = tempnam(sys_get_temp_dir(), 'postrider');
        file_put_contents($file, '<?php require ' . var_export(__DIR__ . '/autoload.php', true) . ";\n$code");

        return $file;
    }

    public function testCalls(): void
    {
        $server = DevServer::get();
        $calls = array_filter(self::examples(), static fn (string $code): bool => str_contains($code, '$client'));
        $file = self::program(implode("\n", $calls));
        $environment = ['POSTRIDER_API_KEY' => $server->apiKey, 'POSTRIDER_BASE_URL' => $server->url];
        $process = proc_open([PHP_BINARY, $file], [1 => ['pipe', 'w'], 2 => ['redirect', 1]], $pipes, null, $environment);
        $output = (string) stream_get_contents($pipes[1]);
        self::assertSame(0, proc_close($process), $output);
        self::assertMatchesRegularExpression('/^msg_\w+\n.*\[subject\] => .*email\.delivered \S+@example\.net\n$/s', $output);
        unlink($file);
    }

    public function testWebhook(): void
    {
        $handlers = array_filter(self::examples(), static fn (string $code): bool => str_contains($code, 'constructEvent'));
        $file = self::program(implode($handlers));
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        $address = stream_socket_get_name($socket, false);
        fclose($socket);
        $environment = ['POSTRIDER_WEBHOOK_SECRET' => self::SECRET];
        $log = ['pipe', 'w'];
        $process = proc_open([PHP_BINARY, '-S', $address, $file], [1 => $log, 2 => $log], $pipes, null, $environment);
        while (!str_contains((string) fgets($pipes[2]), 'started')) {
            self::assertTrue(proc_get_status($process)['running']);
        }
        $body = '{"type":"email.bounced","created_at":"t","data":{"event_id":"evt_1","rcpt_to":"grace@example.net"}}';
        $post = static function (string $secret) use ($address, $body): int {
            $headers = Webhooks::generateTestHeader($body, $secret);
            $fields = array_map(static fn (string $name, string $value) => "$name: $value", array_keys($headers), $headers);
            $handle = curl_init("http://$address/");
            curl_setopt_array($handle, [CURLOPT_POSTFIELDS => $body, CURLOPT_HTTPHEADER => $fields, CURLOPT_RETURNTRANSFER => true]);
            curl_exec($handle);

            return curl_getinfo($handle, CURLINFO_RESPONSE_CODE);
        };
        self::assertSame([200, 401], [$post(self::SECRET), $post('whsec_Zm9yZ2Vk')]);
        proc_terminate($process);
        proc_close($process);
        unlink($file);
    }
}
