//! `/healthz`: may the service be written to? For load balancers and the people who watch it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use store::engine::{Health, State};

use crate::call::Nothing;
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// When to ask again.
const RETRY_AFTER_S: u32 = 10;

/// The answer of a healthy service.
#[derive(Debug, Serialize)]
pub struct Healthy {
    status: &'static str,
}

impl Describe for Healthy {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("Health", |_| {
            schema::object("The service is healthy", [("status", json!({"type": "string", "const": "ok"}))])
        })
    }
}

/// `GET /healthz`.
///
/// # Errors
/// 503 when nothing can be accepted. The reason is told in our words: what the disk said is for the
/// log and the operator's own listener.
pub async fn check(room: Arc<Room>, _: Nothing) -> Result<Healthy, Problem> {
    let (state, reason) = match room.hall.store().health().state {
        State::Healthy => return Ok(Healthy { status: "ok" }),
        State::Full => ("full", "The disk is full: no mail is accepted until there is room"),
        State::Away(_) => ("away", "The database is away: no mail is accepted until it is back"),
        State::Fenced(_) => ("fenced", "The disk failed: no mail is accepted until the process is restarted"),
    };
    Err(Problem::unavailable(reason, RETRY_AFTER_S).details(json!({"state": state, "reason": reason})))
}

/// Why the store is not well, in full: for the operator's own listener.
///
/// # Errors
/// The reason.
pub fn reason(health: &Health) -> Result<(), String> {
    match &health.state {
        State::Healthy => Ok(()),
        State::Full => Err("full: the disk has no room; intake is refused".to_owned()),
        State::Away(why) => Err(format!("away: {why}; intake is refused until the database is back")),
        State::Fenced(why) => Err(format!("fenced: {why}; restart the process")),
    }
}
