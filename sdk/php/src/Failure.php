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
    /** The exception for an answer (202) to a call that waits for an approval; null for any other. */
    public static function ofHeld(Response $response): ?Failures\ApiException
    {
        $held = json_decode($response->body, true, 128);
        if (!\is_array($held) || ($held['status'] ?? null) !== 'approval_required') {
            return null;
        }
        $error = ['code' => $held['status'], 'message' => $held['message'] ?? 'A person must approve this call', 'details' => $held];

        return new Failures\ApprovalRequiredException($response, $error);
    }

    /** The exception for an answer that is no success. */
    public static function of(Response $response): Failures\PostriderException
    {
        $answer = json_decode($response->body, true, 128);
        $error = \is_array($answer) ? ($answer['error'] ?? null) : null;
        if ($response->status < 400 || !\is_array($error) || !\is_string($error['message'] ?? null)) {
            return Failures\UnexpectedResponseException::of($response);
        }
        $code = \is_string($error['code'] ?? null) ? $error['code'] : '';
        $details = \is_array($error['details'] ?? null) ? $error['details'] : [];
        $class = ErrorCodes::CLASSES[$code]
            ?? ($response->status >= 500 ? Failures\ServerException::class : Failures\ApiException::class);
        if ($code === 'validation_error' && (isset($details['suppressed']) || isset($details['category_unsubscribed']))) {
            $class = Failures\SuppressedRecipientException::class;
        }

        return new $class($response, $error);
    }

    /** Whether the same request may be sent again after this failure. */
    public static function isRetryable(Failures\PostriderException $failure, Operation $operation): bool
    {
        if ($failure instanceof Failures\ConnectionException) {
            return !$failure->permanent && ($failure->unsent || $operation->retry);
        }
        if ($failure instanceof Failures\UnexpectedResponseException) {
            return $operation->retry && ($failure->truncated || self::isTransient($failure->status));
        }
        if (!$failure instanceof Failures\ApiException || $failure->errorCode === 'plan_limit') {
            return false;
        }

        return match ($failure->errorCode) {
            'rate_limit_exceeded', 'service_unavailable' => true,
            'idempotency_in_progress' => $operation->retry,
            default => $operation->retry && self::isTransient($failure->status),
        };
    }

    private static function isTransient(int $status): bool
    {
        return \in_array($status, [408, 500, 502, 503], true);
    }
}
