//! `PATCH /emails/{id}`: reschedules or cancels a scheduled email. `POST
//! /emails/{id}/cancel` cancels as well.

use std::sync::Arc;

use jiff::Timestamp;
use queue::intake::RescheduleError;
use serde_json::{Value, json};
use store::access::Tenant;

use super::path::{EmailPath, email_not_found, find, find_without_recipients, id_parameter};
use super::send_options::parse_time;
use crate::emails::view::{EmailDetail, EmailResponse};
use crate::fields::{FieldDiagnostics, FieldNames};
use crate::problem::{ErrorCode, Problem};
use crate::request::{FromRequest, Request, RequestSpec};
use crate::schema::{self, Schemas};
use crate::state::AppState;

/// Enough for a body with two fields.
const BODY_BYTES_MAX: usize = 16 << 10;

const NAMES: FieldNames = FieldNames {
    known: &[("scheduled_at", "scheduled_at"), ("scheduledAt", "scheduled_at"), ("cancel", "cancel")],
    foreign: &[("ScheduledAt", "scheduled_at"), ("Cancel", "cancel")],
};

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
        let body = schemas.component("AmendEmail", |_| {
            let mut body = schema::object_with(
                "A new time or a cancellation; give one of the fields",
                &[],
                [
                    ("scheduled_at", schema::time("The new time to send the email")),
                    ("cancel", schema::boolean("Cancels the email; must be true")),
                ],
            );
            body["examples"] = json!([{"cancel": true}]);
            body
        });
        RequestSpec { parameters: vec![id_parameter()], body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let email = EmailPath::read(call)?;
        let mut notes = FieldDiagnostics::default();
        let fields = call.body_fields(&NAMES, &mut notes)?;
        let change = match (fields.value("scheduled_at"), fields.value("cancel")) {
            (Some(at), None) => parse_time(at).map(ScheduleChange::SendAt).map_err(|text| ("scheduled_at", text)),
            (None, Some(cancel)) => match cancel.get() {
                "true" => Ok(ScheduleChange::Cancel),
                _ => Err(("cancel", "must be true".to_owned())),
            },
            (Some(_), Some(_)) => Err(("cancel", "give either scheduled_at or cancel".to_owned())),
            (None, None) if notes.errors.is_empty() => {
                Err(("scheduled_at", "give either scheduled_at or cancel".to_owned()))
            }
            (None, None) => return Err(notes.errors.into()),
        };
        let change = change.map_err(|(name, text)| notes.errors.add(name, text));
        match change {
            Ok(change) if notes.errors.is_empty() => Ok(Self { email, change }),
            _ => Err(notes.errors.into()),
        }
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
        ScheduleChange::SendAt(at) => state.intake.reschedule(&tenant, id, at).await,
        ScheduleChange::Cancel => state.intake.cancel(&tenant, id).await,
    };
    outcome.map_err(|error| reschedule_error_problem(error, &state))?;
    let found = find(&state, &tenant, id).await?;
    Ok(EmailResponse { email: EmailDetail::load(&state, &tenant, &found).await? })
}

/// `POST /emails/{id}/cancel`.
///
/// # Errors
/// As [`reschedule`].
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
        RescheduleError::Refused(refusal) => Problem::from_refusal(refusal, state.upgrade_url()),
    }
}
