<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception\CancelledException;
use Postrider\Exception\ConnectionException;
use Postrider\Exception\TimeoutException;
use Postrider\Exception\UnexpectedResponseException;

/** Sends one HTTP request. It follows no redirects and repeats nothing by itself. */
interface Transport
{
    /** Bytes of an answer that are read. */
    public const ANSWER_MAX = 256 * 1024 * 1024;

    /** Bytes of an error's body that are read; the rest is left out. */
    public const ERROR_MAX = 1024 * 1024;

    /**
     * @param float                      $timeout   seconds until the answer must be complete
     * @param (callable(): bool)|null    $cancelled whether the caller has cancelled
     *
     * @throws ConnectionException         no answer came
     * @throws UnexpectedResponseException the answer is too large or ends too early
     * @throws TimeoutException            the time is over
     * @throws CancelledException
     */
    public function send(#[\SensitiveParameter] Request $request, float $timeout, ?callable $cancelled = null): Response;
}
