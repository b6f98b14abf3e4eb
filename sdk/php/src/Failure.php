<?php

declare(strict_types=1);

namespace Postrider;

use Postrider\Exception as Failures;

/**
 * Makes exceptions of answers, and says which failures are worth another attempt.
 *
 * @internal
 */
final class Failure
{
    /** The exception for an answer that is no success. */
    public static function of(Response $response): Failures\PostriderException
    {
        $answer = json_decode($response->body, true, 128);
        $error = \is_array($answer) ? ($answer['error'] ?? null) : null;
        if ($response->status < 400 || !\is_array($error) || !\is_string($error['message'] ?? null)) {
            return Failures\UnexpectedResponseException::of($response);
        }

        return ErrorCodes::exception($response, $error);
    }

    /** Whether the same request may be sent again after this failure. */
    public static function isRetryable(Failures\PostriderException $failure, Operation $operation): bool
    {
        return match (true) {
            $failure instanceof Failures\ConnectionException => !$failure->permanent && ($failure->unsent || $operation->retry),
            $failure instanceof Failures\UnexpectedResponseException => ($failure->truncated && $operation->retry)
                || ErrorCodes::isRetried($failure->status, '', $operation->retry),
            $failure instanceof Failures\ApiException => ErrorCodes::isRetried($failure->status, $failure->errorCode, $operation->retry),
            default => false,
        };
    }
}
