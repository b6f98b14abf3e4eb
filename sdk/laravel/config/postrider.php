<?php

return [

    // An API key of your server. A key that may only send is enough for mail.
    'api_key' => env('POSTRIDER_API_KEY'),

    // The address of your server, for example https://mail.example.com.
    'base_url' => env('POSTRIDER_BASE_URL'),

    // Seconds for a call with all its retries.
    'timeout' => (float) env('POSTRIDER_TIMEOUT', 30),

    'webhook' => [

        // The path of the webhook route; null for no route.
        'path' => env('POSTRIDER_WEBHOOK_PATH', 'postrider/webhook'),

        // The secret of the webhook (whsec_…); two, separated by a comma, while one replaces the other.
        'secret' => env('POSTRIDER_WEBHOOK_SECRET'),

        // Seconds that the time of a webhook may differ from this server's.
        'tolerance' => 300,

    ],

];
