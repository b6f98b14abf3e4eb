<?php

declare(strict_types=1);

// A server that misbehaves. Its argument is a JSON list of answers, one for each request; the last one repeats:
// {"status", "headers", "body", "bytes": size of the body, "mode": "keep"|"reset"|"hang"|"slow_headers"|"slow_body"|"cut"}.
// It prints its port, then one line of JSON for each request.
[, $script, $certificate] = $argv + [2 => ''];
$answers = json_decode($script, true);
$context = stream_context_create($certificate === '' ? [] : ['ssl' => ['local_cert' => $certificate]]);
$server = stream_socket_server(
    ($certificate === '' ? 'tcp' : 'ssl') . '://127.0.0.1:0',
    $number,
    $error,
    STREAM_SERVER_BIND | STREAM_SERVER_LISTEN,
    $context,
);
echo substr((string) strrchr(stream_socket_get_name($server, false), ':'), 1), "\n";
$connections = 0;
while (true) {
    $client = @stream_socket_accept($server, 60);
    if ($client === false) {
        continue;
    }
    ++$connections;
    while (($request = read_request($client)) !== null) {
        $answer = count($answers) > 1 ? array_shift($answers) : $answers[0];
        echo json_encode($request + ['connection' => $connections], JSON_INVALID_UTF8_SUBSTITUTE), "\n";
        if (!answer($client, $answer)) {
            break;
        }
    }
    @fclose($client);
}

function read_request($client): ?array
{
    $line = fgets($client);
    if ($line === false) {
        return null;
    }
    if (preg_match('/^([A-Z]+) (\S+) HTTP/', $line, $found) !== 1) {
        return null;
    }
    [, $method, $path] = $found;
    $headers = [];
    while (($line = fgets($client)) !== false && trim($line) !== '') {
        [$name, $value] = explode(':', $line, 2);
        $headers[strtolower($name)] = trim($value);
    }
    $length = (int) ($headers['content-length'] ?? 0);
    $body = $length > 0 ? stream_get_contents($client, $length) : '';

    return compact('method', 'path', 'headers', 'body');
}

/** Whether the connection can be used again. */
function answer($client, array $answer): bool
{
    $mode = $answer['mode'] ?? '';
    if ($mode === 'reset') {
        $socket = socket_import_stream($client);
        socket_set_option($socket, SOL_SOCKET, SO_LINGER, ['l_onoff' => 1, 'l_linger' => 0]);

        return false;
    }
    if ($mode === 'hang') {
        fread($client, 1);

        return false;
    }
    $body = $answer['body'] ?? str_repeat('x', $answer['bytes'] ?? 0);
    $headers = ($answer['headers'] ?? []) + ['content-type' => 'application/json', 'content-length' => strlen($body)];
    $head = "HTTP/1.1 {$answer['status']} Answer\r\n";
    foreach ($headers as $name => $value) {
        $head .= $value === null ? '' : "$name: $value\r\n";
    }
    $head .= $mode === 'keep' ? "\r\n" : "connection: close\r\n\r\n";
    if ($mode === 'slow_headers') {
        return drip($client, $head);
    }
    if ($mode === 'slow_body') {
        fwrite($client, $head);

        return drip($client, $body);
    }
    @fwrite($client, $head . ($mode === 'cut' ? substr($body, 0, intdiv(strlen($body), 2)) : $body));

    return $mode === 'keep';
}

/** Writes a byte now and then until the other end leaves. */
function drip($client, string $text): bool
{
    for ($at = 0; @fwrite($client, $text[$at] ?? '') !== false && $at < strlen($text); ++$at) {
        usleep(50_000);
        if (feof($client)) {
            break;
        }
    }

    return false;
}
