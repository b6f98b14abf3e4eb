//! `PATCH /emails/{id}`: reschedules or cancels a scheduled email. `POST
//! /emails/{id}/cancel` cancels as well.

use httpd::request_object::read_checked_body;
use httpd::request_value::Time;
use jiff::Timestamp;
use queue::intake::RescheduleError;
use serde_json::value::RawValue;

use super::path::{EmailPath, email_not_found, find, find_without_recipients, id_parameter};
use crate::emails::view::{EmailDetail, EmailResponse};
use crate::prelude::*;
use crate::submit_problem;

/// Enough for a body with two fields.
const BODY_BYTES_MAX: usize = 16 << 10;

/// A new time or a cancellation; give one of the fields
#[derive(Debug, RequestObject)]
#[schema(name = "AmendEmail", examples = [{"cancel": true}])]
struct ScheduleFields {
    /// The new time to send the email
    #[field(aliases = ["scheduledAt"], foreign = ["ScheduledAt"], reader = Time)]
    scheduled_at: Option<Timestamp>,
    /// Cancels the email; must be true
    #[field(foreign = ["Cancel"], parse = parse_cancel, schema = cancel_schema)]
    cancel: Option<ScheduleChange>,
}

fn cancel_schema(_: &mut Schemas) -> Value {
    json!({"type": "boolean"})
}

fn parse_cancel(value: &RawValue) -> Result<ScheduleChange, String> {
    if value.get() == "true" { Ok(ScheduleChange::Cancel) } else { Err("must be true".to_owned()) }
}

/// A change of a scheduled email.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScheduleChange {
    SendAt(Timestamp),
    Cancel,
}

/// Path and body of `PATCH /emails/{id}`.
#[derive(Debug)]
pub struct RescheduleEmail {
    email: EmailPath,
    change: ScheduleChange,
}

impl FromRequest for RescheduleEmail {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        body_spec::<ScheduleFields>(schemas, vec![id_parameter()], Self::BODY_BYTES_MAX)
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        const ONE_OF: &str = "give either scheduled_at or cancel";
        let email = EmailPath::read(call)?;
        let ScheduleFields { scheduled_at, cancel } =
            read_checked_body(call, |_: &ScheduleFields, fields, notes| {
                match (fields.value("scheduled_at"), fields.value("cancel")) {
                    (Some(_), Some(_)) => notes.errors.add("cancel", ONE_OF),
                    (None, None) if notes.errors.is_empty() => notes.errors.add("scheduled_at", ONE_OF),
                    _ => {}
                }
            })?;
        let change = scheduled_at.map(ScheduleChange::SendAt).or(cancel);
        let change = change.ok_or_else(|| Problem::field("scheduled_at", ONE_OF))?;
        Ok(Self { email, change })
    }
}

/// `PATCH /emails/{id}`.
///
/// # Errors
/// The email does not exist, is not scheduled, or is being sent at the same time.
pub async fn reschedule(
    state: Arc<AppState>,
    tenant: Tenant,
    input: RescheduleEmail,
) -> Result<EmailResponse, Problem> {
    let RescheduleEmail { email: EmailPath(id), change } = input;
    find_without_recipients(&state, &tenant, id).await?;
    let outcome = match change {
        ScheduleChange::SendAt(at) => state.accounts.scheduled_emails.reschedule(&tenant, id, at).await,
        ScheduleChange::Cancel => state.accounts.scheduled_emails.cancel(&tenant, id).await,
    };
    outcome.map_err(|error| reschedule_error_problem(error, &state))?;
    let found = find(&state, &tenant, id).await?;
    Ok(EmailResponse { email: EmailDetail::load(&state, &tenant, &found).await? })
}

/// `POST /emails/{id}/cancel`.
pub async fn cancel(state: Arc<AppState>, tenant: Tenant, email: EmailPath) -> Result<EmailResponse, Problem> {
    reschedule(state, tenant, RescheduleEmail { email, change: ScheduleChange::Cancel }).await
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
        RescheduleError::Refused(refusal) => submit_problem::from_refusal(refusal, state.upgrade_url()),
    }
}
