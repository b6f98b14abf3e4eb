//! `/healthz`: may the service be written to? For load balancers and the people who watch it.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use store::engine::{Health, StoreState};

use crate::call::NoInput;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// When to ask again.
const RETRY_AFTER_S: u32 = 10;

/// The answer of a healthy service.
#[derive(Debug, Serialize)]
pub struct HealthResponse {
    status: &'static str,
}

impl ToSchema for HealthResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Health", |_| {
            schema::object("The service is healthy", [("status", json!({"type": "string", "const": "ok"}))])
        })
    }
}

/// `GET /healthz`.
///
/// # Errors
/// 503 when nothing can be accepted. The reason is told in our words: what the disk said is for the
/// log and the operator's own listener.
pub async fn check(room: Arc<AppState>, _: NoInput) -> Result<HealthResponse, Problem> {
    let (state, reason) = match room.intake.store().health().state {
        StoreState::Healthy => return Ok(HealthResponse { status: "ok" }),
        StoreState::Full => ("full", "The disk is full: no mail is accepted until there is room"),
        StoreState::Away(_) => ("away", "The database is away: no mail is accepted until it is back"),
        StoreState::Fenced(_) => ("fenced", "The disk failed: no mail is accepted until the process is restarted"),
    };
    Err(Problem::unavailable(reason, RETRY_AFTER_S).with_details(json!({"state": state, "reason": reason})))
}

/// Why the store is not well, in full: for the operator's own listener.
///
/// # Errors
/// The reason.
pub fn unhealthy_reason(health: &Health) -> Result<(), String> {
    match &health.state {
        StoreState::Healthy => Ok(()),
        StoreState::Full => Err("full: the disk has no room; intake is refused".to_owned()),
        StoreState::Away(why) => Err(format!("away: {why}; intake is refused until the database is back")),
        StoreState::Fenced(why) => Err(format!("fenced: {why}; restart the process")),
    }
}
