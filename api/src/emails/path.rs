//! Path of an email, and the email that it names.

use crate::prelude::*;
use model::email::Email;
use store::email::EmailWithRecipients;

id_path! { pub EmailPath(EmailId), "The email's id (`msg_…`)", "email" }

pub(super) fn email_not_found() -> Problem {
    Problem::new(ErrorCode::NOT_FOUND, "No such email")
}

pub(super) async fn find(state: &AppState, tenant: &Tenant, id: EmailId) -> Result<EmailWithRecipients> {
    let found = store::email::get(&state.services.store, tenant.account().id, id).await?;
    let found = found.ok_or_else(email_not_found)?;
    check_key_access(state, tenant, &found.email).await?;
    Ok(found)
}

pub(super) async fn find_without_recipients(state: &AppState, tenant: &Tenant, id: EmailId) -> Result<Email> {
    let found = store::email::get_without_recipients(&state.services.store, tenant.account().id, id).await?;
    let email = found.ok_or_else(email_not_found)?;
    check_key_access(state, tenant, &email).await?;
    Ok(email)
}

/// A sending-only key sees only emails that it sent; a key restricted to a domain only those sent from it. Others are
/// answered 404.
async fn check_key_access(state: &AppState, tenant: &Tenant, email: &Email) -> Result<()> {
    if tenant.confined_to().is_some_and(|credential| email.sent_by != Some(credential)) {
        return Err(email_not_found());
    }
    let Some(bound_domain) = tenant.bound_to() else { return Ok(()) };
    let domain = store::domain::get(&state.services.store, tenant.account().id, bound_domain).await?;
    match domain {
        Some(domain) if email.domain.as_ref() == Some(&domain.name) => Ok(()),
        _ => Err(email_not_found()),
    }
}
