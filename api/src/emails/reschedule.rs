//! `PATCH /emails/{id}`: reschedules or cancels a scheduled email. `POST
//! /emails/{id}/cancel` cancels as well.

use httpd::request_value::Time;
use queue::intake::RescheduleError;

use super::path::{EmailPath, email_not_found, find, find_without_recipients};
use crate::emails::view::{EmailDetail, EmailResponse};
use crate::prelude::*;

/// Enough for a body with two fields.
const BODY_BYTES_MAX: usize = 16 << 10;

/// A new time or a cancellation; give one of the fields
#[derive(Debug, RequestObject)]
#[schema(name = "AmendEmail", examples = [{"cancel": true}], body_bytes_max = BODY_BYTES_MAX, check = check_change)]
pub struct RescheduleEmail {
    /// The new time to send the email
    #[field(aliases = ["scheduledAt"], foreign = ["ScheduledAt"], reader = Time)]
    scheduled_at: Option<Timestamp>,
    /// Cancels the email; must be true
    #[field(foreign = ["Cancel"], parse = parse_cancel, schema = json!({"type": "boolean"}))]
    #[expect(dead_code, reason = "without a time the email is cancelled")]
    cancel: Option<Cancellation>,
}

#[derive(Debug)]
struct Cancellation;

fn check_change(_: &RescheduleEmail, fields: &ObjectFields<'_>, notes: &mut FieldDiagnostics) {
    const ONE_OF: &str = "give either scheduled_at or cancel";
    match (fields.value("scheduled_at"), fields.value("cancel")) {
        (Some(_), Some(_)) => notes.errors.add("cancel", ONE_OF),
        (None, None) if notes.errors.is_empty() => notes.errors.add("scheduled_at", ONE_OF),
        _ => {}
    }
}

fn parse_cancel(value: &RawValue) -> Result<Cancellation, String> {
    if value.get() == "true" { Ok(Cancellation) } else { Err("must be true".to_owned()) }
}

/// `PATCH /emails/{id}`.
///
/// # Errors
/// The email does not exist, is not scheduled, or is being sent at the same time.
pub async fn reschedule(
    state: State,
    tenant: Tenant,
    (EmailPath(id), change): (EmailPath, RescheduleEmail),
) -> Result<EmailResponse> {
    find_without_recipients(&state, &tenant, id).await?;
    let outcome = match change.scheduled_at {
        Some(at) => state.accounts.intake.reschedule_email(&tenant, id, at).await,
        None => state.accounts.intake.cancel_scheduled_email(&tenant, id).await,
    };
    outcome.map_err(|error| reschedule_error_problem(error, &state))?;
    let found = find(&state, &tenant, id).await?;
    Ok(EmailResponse { email: EmailDetail::load(&state, &tenant, &found).await? })
}

/// `POST /emails/{id}/cancel`.
pub async fn cancel(state: State, tenant: Tenant, email: EmailPath) -> Result<EmailResponse> {
    let cancellation = RescheduleEmail { scheduled_at: None, cancel: Some(Cancellation) };
    reschedule(state, tenant, (email, cancellation)).await
}

fn reschedule_error_problem(error: RescheduleError, state: &AppState) -> Problem {
    match error {
        RescheduleError::Unknown => email_not_found(),
        RescheduleError::NotScheduled(status) => {
            let status = serde_json::to_value(status).unwrap_or(Value::Null);
            Problem::new(ErrorCode::VALIDATION_ERROR, "Only a scheduled email can be changed")
                .with_details(json!({"status": status}))
        }
        RescheduleError::Conflict => {
            Problem::new(ErrorCode::CONFLICT, "The email was sent or changed at the same time")
        }
        RescheduleError::Refused(refusal) => refusal.into_problem(state),
    }
}
