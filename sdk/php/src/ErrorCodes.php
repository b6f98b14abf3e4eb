<?php
// Generated from sdk/operations.json by sdk/generate; do not edit.

declare(strict_types=1);

namespace Postrider;

/**
 * The exception of each error code.
 *
 * @internal
 */
final class ErrorCodes
{
    public const CLASSES = [
        'account_suspended' => Exception\PermissionException::class,
        'approval_required' => Exception\ApprovalRequiredException::class,
        'bad_request' => Exception\ValidationException::class,
        'conflict' => Exception\ConflictException::class,
        'domain_claimed' => Exception\ConflictException::class,
        'domain_not_verified' => Exception\PermissionException::class,
        'forbidden' => Exception\PermissionException::class,
        'gone' => Exception\ApiException::class,
        'headers_too_large' => Exception\ValidationException::class,
        'idempotency_conflict' => Exception\IdempotencyConflictException::class,
        'idempotency_in_progress' => Exception\ConflictException::class,
        'internal_error' => Exception\ServerException::class,
        'invalid_cursor' => Exception\ValidationException::class,
        'invalid_idempotency_key' => Exception\ValidationException::class,
        'invalid_json' => Exception\ValidationException::class,
        'ip_not_allowed' => Exception\PermissionException::class,
        'mail_server_error' => Exception\ServerException::class,
        'method_not_allowed' => Exception\ValidationException::class,
        'not_found' => Exception\NotFoundException::class,
        'payload_too_large' => Exception\ValidationException::class,
        'plan_limit' => Exception\PlanLimitException::class,
        'policy_violation' => Exception\PermissionException::class,
        'production_access_required' => Exception\PermissionException::class,
        'rate_limit_exceeded' => Exception\RateLimitException::class,
        'reauthentication_required' => Exception\AuthenticationException::class,
        'request_timeout' => Exception\ServerException::class,
        'sandbox_restricted' => Exception\PermissionException::class,
        'send_unconfirmed' => Exception\SendUnconfirmedException::class,
        'service_unavailable' => Exception\ServerException::class,
        'unauthorized' => Exception\AuthenticationException::class,
        'unsupported_media_type' => Exception\ValidationException::class,
        'upstream_error' => Exception\UpstreamException::class,
        'validation_error' => Exception\ValidationException::class,
    ];
}
