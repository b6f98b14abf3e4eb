//! `PATCH /emails/{id}`: a scheduled email is sent at another time, or not at all
//! (completions-email.md 2.3); `POST /emails/{id}/cancel` is what others call the second.

use std::sync::Arc;

use jiff::Timestamp;
use queue::accept::AmendError;
use serde_json::{Value, json};
use store::access::Tenant;

use super::wishes::time;
use super::{OfEmail, find, find_bare, id_parameter, no_such_email};
use crate::call::{Call, Input, Takes};
use crate::emails::view::{EmailDetail, OneEmail};
use crate::fields::{Names, Notes};
use crate::problem::{Code, Problem};
use crate::room::Room;
use crate::schema::{self, Schemas};

/// The body: two fields.
const BODY_BYTES_MAX: usize = 16 << 10;

const NAMES: Names = Names {
    known: &[("scheduled_at", "scheduled_at"), ("scheduledAt", "scheduled_at"), ("cancel", "cancel")],
    foreign: &[("ScheduledAt", "scheduled_at"), ("Cancel", "cancel")],
};

/// What is to become of the email.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    SendAt(Timestamp),
    Cancel,
}

/// What `PATCH /emails/{id}` takes.
#[derive(Debug)]
pub struct AmendEmail {
    email: OfEmail,
    change: Change,
}

impl Input for AmendEmail {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("AmendEmail", |_| {
            let mut body = schema::object_with(
                "Another time, or none: one of both fields",
                &[],
                [
                    ("scheduled_at", schema::time("When it is to be sent instead")),
                    ("cancel", schema::boolean("It is not to be sent; always true")),
                ],
            );
            body["examples"] = json!([{"cancel": true}]);
            body
        });
        Takes { parameters: vec![id_parameter()], body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let email = OfEmail::read(call)?;
        let mut notes = Notes::default();
        let given = call.given(&NAMES, &mut notes)?;
        let change = match (given.value("scheduled_at"), given.value("cancel")) {
            (Some(at), None) => time(at).map(Change::SendAt).map_err(|text| ("scheduled_at", text)),
            (None, Some(cancel)) => match cancel.get() {
                "true" => Ok(Change::Cancel),
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
/// No such email, one that is not scheduled, or one that is being sent this moment.
pub async fn amend(room: Arc<Room>, tenant: Tenant, input: AmendEmail) -> Result<OneEmail, Problem> {
    let AmendEmail { email: OfEmail(id), change } = input;
    find_bare(&room, &tenant, id).await?;
    let outcome = match change {
        Change::SendAt(at) => room.hall.reschedule(&tenant, id, at).await,
        Change::Cancel => room.hall.cancel(&tenant, id).await,
    };
    outcome.map_err(|error| problem(error, &room))?;
    let found = find(&room, &tenant, id).await?;
    Ok(OneEmail { email: EmailDetail::read(&room, &tenant, &found).await? })
}

/// `POST /emails/{id}/cancel`.
///
/// # Errors
/// As [`amend`].
pub async fn cancel(room: Arc<Room>, tenant: Tenant, email: OfEmail) -> Result<OneEmail, Problem> {
    amend(room, tenant, AmendEmail { email, change: Change::Cancel }).await
}

fn problem(error: AmendError, room: &Room) -> Problem {
    match error {
        AmendError::Unknown => no_such_email(),
        AmendError::NotScheduled(status) => {
            let status = serde_json::to_value(status).unwrap_or(Value::Null);
            Problem::new(Code::VALIDATION_ERROR, "Only a scheduled email can be changed")
                .details(json!({"status": status}))
        }
        AmendError::Raced => Problem::new(Code::CONFLICT, "The email was sent or changed at the same time"),
        AmendError::Refused(refusal) => Problem::of_refusal(refusal, room.upgrade_url()),
    }
}
