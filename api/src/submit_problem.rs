//! Problems of the intake and of quotas: the responses to their errors, which carry nouns.

use httpd::json_timestamp::JsonTimestamp;
use httpd::problem::{ErrorCode, OUTAGE_RETRY_AFTER_S, Problem, RETRY_AFTER_S};
use message::address::Address;
use model::email::Category;
use model::id::EmailId;
use model::quota::QuotaExceeded;
use model::suppression::{BlockReason, BlockedRecipient};
use model::usage::{ExceededCap, UsagePeriod};
use queue::intake::storage_quota::StorageQuotaError;
use queue::intake::submit_error::SubmitError;
use serde_json::json;

/// Addresses that a message names; the details of the error have all.
const NAMED_MAX: usize = 5;

/// The response to an error of the intake.
pub(crate) fn from_refusal(refusal: SubmitError, upgrade_url: Option<&str>) -> Problem {
    match refusal {
        SubmitError::DomainNotVerified { domain } => Problem::new(
            ErrorCode::DOMAIN_NOT_VERIFIED,
            format!("The domain {domain} is not verified for this account: add it and publish its DNS records"),
        )
        .with_details(json!({"domain": domain})),
        SubmitError::SandboxNotConfigured { domain } => Problem::new(
            ErrorCode::DOMAIN_NOT_VERIFIED,
            format!("The sandbox is not set up on this server: the operator has not verified {domain}"),
        )
        .with_details(json!({"domain": domain})),
        SubmitError::SandboxRestricted { allowed } => {
            Problem::new(ErrorCode::SANDBOX_RESTRICTED, "This sender can send only to the account's own address")
                .with_details(json!({"allowed": [allowed]}))
        }
        SubmitError::ProductionRequired => Problem::new(
            ErrorCode::PRODUCTION_ACCESS_REQUIRED,
            "Sending to other recipients requires production access",
        )
        .with_upgrade_url(upgrade_url)
        .with_details(json!({"upgrade_url": upgrade_url})),
        SubmitError::Suppressed { id, category, blocked } => recipients_blocked(id, category, &blocked),
        SubmitError::PlanLimit(ExceededCap { period, used, cap }) => {
            let message = match period {
                UsagePeriod::Day(_) => "Daily limit reached",
                UsagePeriod::Month(_) => "Monthly limit reached",
            };
            let resets_at = JsonTimestamp(period.ends_at());
            Problem::new(ErrorCode::PLAN_LIMIT, message)
                .with_upgrade_url(upgrade_url)
                .with_details(json!({"limit": period.name(), "used": used, "cap": cap, "resets_at": resets_at}))
        }
        SubmitError::StorageFull(full) => plan_full(full, upgrade_url),
        SubmitError::DomainNotAllowed { domain } => {
            Problem::new(ErrorCode::FORBIDDEN, format!("This API key cannot send from {domain}"))
                .with_details(json!({"domain": domain}))
        }
        SubmitError::Policy(violation) => Problem::policy_violation(violation.rule(), violation.to_string()),
        SubmitError::NotApproved => Problem::new(
            ErrorCode::CONFLICT,
            "The email differs from the one that was approved: its template, or the email that it is made from, has \
             changed. Nothing was sent; request it again",
        ),
        SubmitError::AccountSuspended => Problem::new(ErrorCode::ACCOUNT_SUSPENDED, "The account is suspended"),
        SubmitError::Message(error) => Problem::new(ErrorCode::VALIDATION_ERROR, error.to_string()),
        SubmitError::Invalid { field, message } => Problem::field(field, message),
        SubmitError::TooLarge { bytes_max } => {
            Problem::new(ErrorCode::PAYLOAD_TOO_LARGE, format!("The message is larger than {bytes_max} bytes"))
                .with_details(json!({"bytes_max": bytes_max}))
        }
        SubmitError::TooManyRecipients { recipients_max } => {
            Problem::field("to", format!("at most {recipients_max} recipients in to, cc and bcc together"))
        }
        SubmitError::SigningFailed => Problem::new(
            ErrorCode::MAIL_SERVER_ERROR,
            "The message could not be signed; nothing was accepted. The operator has been notified",
        )
        .with_details(json!({"idempotency_key_released": true})),
        SubmitError::InsufficientStorage => {
            Problem::unavailable("Disk full: not accepting mail, retry later", OUTAGE_RETRY_AFTER_S)
        }
        SubmitError::Unavailable => {
            Problem::unavailable("Not accepting mail at the moment; retry later", OUTAGE_RETRY_AFTER_S)
        }
        // A request with an idempotency key gets the stored result instead.
        SubmitError::DoneConcurrently => {
            Problem::new(ErrorCode::IDEMPOTENCY_IN_PROGRESS, "The same request was made concurrently")
                .with_header(http::header::RETRY_AFTER, RETRY_AFTER_S.to_string())
        }
        SubmitError::Unconfirmed { id } => unconfirmed(id),
    }
}

/// 403: the plan's quota of a noun is used up.
pub(crate) fn plan_full(full: QuotaExceeded, upgrade_url: Option<&str>) -> Problem {
    let QuotaExceeded { noun, used, cap } = full;
    Problem::new(ErrorCode::PLAN_FULL, format!("The plan includes {cap} {}", noun.word().replace('_', " ")))
        .with_upgrade_url(upgrade_url)
        .with_details(json!({"limit": noun.word(), "used": used, "cap": cap}))
}

/// The response to a failed quota reservation.
pub(crate) fn from_quota_error(error: StorageQuotaError, upgrade_url: Option<&str>) -> Problem {
    match error {
        StorageQuotaError::Full(full) => plan_full(full, upgrade_url),
        error @ StorageQuotaError::Counting(_) => Problem::unavailable(error.to_string(), OUTAGE_RETRY_AFTER_S),
        StorageQuotaError::Read(error) => error.into(),
    }
}

/// 422: recipients are suppressed or opted out of the category.
fn recipients_blocked(id: Option<EmailId>, category: Category, blocked: &[BlockedRecipient]) -> Problem {
    let addresses_blocked_by = |kind: fn(&BlockReason) -> bool| -> Vec<&Address> {
        blocked.iter().filter(|entry| kind(&entry.reason)).map(|entry| &entry.address).collect()
    };
    let suppressed = addresses_blocked_by(|reason| matches!(reason, BlockReason::Suppressed { .. }));
    let opted_out = addresses_blocked_by(|reason| matches!(reason, BlockReason::OptedOut { .. }));
    let message = match suppressed.as_slice() {
        [] => format!("Recipients have opted out of this category: {}", named_addresses(&opted_out)),
        [only] => format!("Recipient is suppressed: {only}"),
        several => format!("Recipients are suppressed: {}", named_addresses(several)),
    };
    let mut details = json!({"email_id": id});
    if !suppressed.is_empty() {
        details["suppressed"] = json!(suppressed);
    }
    if !opted_out.is_empty() {
        details["category_unsubscribed"] = json!(opted_out);
        details["category"] = json!(category);
    }
    Problem::new(ErrorCode::RECIPIENT_BLOCKED, message).with_details(details)
}

/// The first addresses of a list, and the number of the others.
fn named_addresses(addresses: &[&Address]) -> String {
    let named: Vec<String> = addresses.iter().copied().take(NAMED_MAX).map(ToString::to_string).collect();
    match addresses.len().saturating_sub(NAMED_MAX) {
        0 => named.join(", "),
        others => format!("{} and {others} more", named.join(", ")),
    }
}

/// 504: it is unknown whether the email was accepted.
pub(crate) fn unconfirmed(id: EmailId) -> Problem {
    Problem::new(ErrorCode::SEND_UNCONFIRMED, "The send could not be confirmed; it may still be delivered")
        .with_details(json!({"email_id": id, "idempotency_key_released": false}))
}

#[cfg(test)]
mod tests {
    use model::id::SuppressionId;
    use model::suppression::SuppressionReason;

    use super::*;

    #[test]
    fn suppressed_recipients_are_named() {
        let message = |count: usize| {
            let blocked: Vec<BlockedRecipient> = (0..count)
                .map(|n| BlockedRecipient {
                    address: format!("{n}@example.net").parse().unwrap(),
                    reason: BlockReason::Suppressed {
                        id: SuppressionId::from_bytes([0; 16]),
                        reason: SuppressionReason::Manual,
                    },
                })
                .collect();
            recipients_blocked(None, Category::Transactional, &blocked).message().to_owned()
        };
        assert_eq!(message(1), "Recipient is suppressed: 0@example.net");
        assert_eq!(message(2), "Recipients are suppressed: 0@example.net, 1@example.net");
        assert!(message(7).ends_with(", 4@example.net and 2 more"), "{}", message(7));
    }
}
