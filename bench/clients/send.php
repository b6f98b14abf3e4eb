<?php

// Times of bare requests and of `emails->send`, in turns, as JSON.

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    require __DIR__ . '/../../sdk/php/src/' . str_replace('\\', '/', substr($class, \strlen('Postrider\\'))) . '.php';
});

$email = ['from' => 'ada@example.com', 'to' => 'grace@example.net', 'subject' => 'Hello', 'text' => 'Hello Grace'];
$client = new Postrider\Client();
$handle = curl_init(getenv('POSTRIDER_BASE_URL') . '/emails');
curl_setopt_array($handle, [
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HTTPHEADER => ['Authorization: Bearer ' . getenv('POSTRIDER_API_KEY'), 'Content-Type: application/json'],
]);
$kinds = [
    'bare' => static function () use ($handle, $email): void {
        curl_setopt($handle, CURLOPT_POSTFIELDS, json_encode($email));
        json_decode(curl_exec($handle), true);
    },
    'sdk' => static fn () => $client->emails->send($email),
];
$times = ['bare' => [], 'sdk' => []];
for ($number = -500; $number < (int) getenv('COUNT'); ++$number) {
    foreach ($kinds as $kind => $send) {
        $started = hrtime(true);
        $send();
        if ($number >= 0) {
            $times[$kind][] = (hrtime(true) - $started) / 1e6;
        }
    }
}
echo json_encode($times), "\n";
