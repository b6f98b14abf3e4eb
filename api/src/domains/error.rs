//! Problem responses of domains.

use accounts::domains::DomainError;

use crate::prelude::*;
use crate::suppressions::commit_error::commit_error_problem;

pub(super) fn domain_not_found() -> Problem {
    Problem::not_found("domain")
}

/// Maps a domain error to its problem response.
pub(super) fn domain_error_problem(error: DomainError, state: &AppState, tenant: &Tenant) -> Problem {
    match error {
        DomainError::Exists(name) => {
            Problem::new(ErrorCode::CONFLICT, format!("The account already has the domain {name}"))
                .with_details(json!({"domain": name}))
        }
        DomainError::Taken(name) => {
            let record = state.accounts.domains.facts().ownership_record(tenant.account().id, &name);
            let text = format!(
                "Another account has {name}. If you control its DNS, publish this record and call POST /domains/claims"
            );
            Problem::new(ErrorCode::DOMAIN_CLAIMED, text).with_details(json!({
                "domain": name,
                "claim": {
                    "method": "dns_txt",
                    "name": record.name,
                    "value": record.value,
                    "create": "POST /domains/claims",
                },
            }))
        }
        DomainError::Limit { limit, used } => {
            let domains = if limit == 1 { "domain" } else { "domains" };
            Problem::new(
                ErrorCode::PLAN_FULL,
                format!("Your plan includes {limit} {domains}; upgrade your plan or delete a domain"),
            )
            .with_details(json!({"limit": "domains", "used": used, "cap": limit}))
            .with_upgrade_url(state.upgrade_url())
        }
        error @ DomainError::TooLong(_) => Problem::field("name", error.to_string()),
        DomainError::Unknown => domain_not_found(),
        DomainError::Conflict => Problem::new(ErrorCode::CONFLICT, "The domain was changed at the same time; retry"),
        DomainError::TooManyDnsQueries { retry_after } => Problem::dns_lookups_limited(retry_after),
        DomainError::Keys(error) => Problem::internal(error),
        DomainError::Read(error) => error.into(),
        DomainError::Commit(error) => commit_error_problem(error),
    }
}
