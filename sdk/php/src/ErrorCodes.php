<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider;

/**
 * What follows from the codes of the API's errors.
 *
 * @internal
 */
final class ErrorCodes
{
    /** The exception of each code, and whether a call is repeated after it: `safe` if it does no harm that it was carried out. */
    private const CODES = [
        'account_suspended' => [Exception\PermissionException::class, 'never'],
        'approval_required' => [Exception\ApprovalRequiredException::class, 'never'],
        'bad_request' => [Exception\ValidationException::class, 'never'],
        'conflict' => [Exception\ConflictException::class, 'never'],
        'domain_claimed' => [Exception\ConflictException::class, 'never'],
        'domain_not_verified' => [Exception\PermissionException::class, 'never'],
        'forbidden' => [Exception\PermissionException::class, 'never'],
        'gone' => [Exception\ApiException::class, 'never'],
        'headers_too_large' => [Exception\ValidationException::class, 'never'],
        'idempotency_conflict' => [Exception\IdempotencyConflictException::class, 'never'],
        'idempotency_in_progress' => [Exception\ConflictException::class, 'safe'],
        'internal_error' => [Exception\ServerException::class, 'safe'],
        'invalid_cursor' => [Exception\ValidationException::class, 'never'],
        'invalid_idempotency_key' => [Exception\ValidationException::class, 'never'],
        'invalid_json' => [Exception\ValidationException::class, 'never'],
        'ip_not_allowed' => [Exception\PermissionException::class, 'never'],
        'mail_server_error' => [Exception\ServerException::class, 'safe'],
        'method_not_allowed' => [Exception\ValidationException::class, 'never'],
        'not_found' => [Exception\NotFoundException::class, 'never'],
        'payload_too_large' => [Exception\ValidationException::class, 'never'],
        'plan_limit' => [Exception\PlanLimitException::class, 'never'],
        'policy_violation' => [Exception\PermissionException::class, 'never'],
        'production_access_required' => [Exception\PermissionException::class, 'never'],
        'rate_limit_exceeded' => [Exception\RateLimitException::class, 'always'],
        'reauthentication_required' => [Exception\AuthenticationException::class, 'never'],
        'request_timeout' => [Exception\ServerException::class, 'safe'],
        'sandbox_restricted' => [Exception\PermissionException::class, 'never'],
        'send_unconfirmed' => [Exception\SendUnconfirmedException::class, 'never'],
        'service_unavailable' => [Exception\ServerException::class, 'always'],
        'unauthorized' => [Exception\AuthenticationException::class, 'never'],
        'unsupported_media_type' => [Exception\ValidationException::class, 'never'],
        'upstream_error' => [Exception\UpstreamException::class, 'never'],
        'validation_error' => [Exception\ValidationException::class, 'never'],
    ];

    /** @param array<string, mixed> $error the object `error` of the answer */
    public static function exception(Response $response, array $error): Exception\ApiException
    {
        $code = \is_string($error['code'] ?? null) ? $error['code'] : '';
        $class = self::CODES[$code][0] ?? ($response->status >= 500 ? Exception\ServerException::class : Exception\ApiException::class);
        $details = \is_array($error['details'] ?? null) ? $error['details'] : [];
        if ($code === 'validation_error' && (isset($details['suppressed']) || isset($details['category_unsubscribed']))) {
            $class = Exception\SuppressedRecipientException::class;
        }

        return new $class($response, $error);
    }

    /** The exception for an answer (202) to a call that waits for an approval; null for any other. */
    public static function held(Response $response): ?Exception\ApiException
    {
        $held = json_decode($response->body, true, 128);
        if (!\is_array($held) || ($held['status'] ?? null) !== 'approval_required') {
            return null;
        }
        $message = $held['message'] ?? 'A person must approve this call';

        return self::exception($response, ['code' => $held['status'], 'message' => $message, 'details' => $held]);
    }

    /**
     * Whether a call is repeated after an answer.
     *
     * @param bool $isSafe it does no harm that the first one was carried out
     */
    public static function isRetried(int $status, string $code, bool $isSafe): bool
    {
        $retry = self::CODES[$code][1] ?? (\in_array($status, [408,500,502,503], true) ? 'safe' : 'never');

        return $retry === 'always' || ($isSafe && $retry === 'safe');
    }
}
