//! `/healthz`: returns whether the service accepts mail. For load balancers and monitoring.

use crate::prelude::*;
use store::engine::{Health, StoreState};

const RETRY_AFTER_S: u32 = 10;

/// The service is healthy
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Health")]
pub struct HealthResponse {
    #[schema(const = "ok")]
    status: &'static str,
}

/// `GET /healthz`.
///
/// # Errors
/// 503 when no mail can be accepted. The message is generic; the disk's or database's error is in the log and the
/// operator's listener only.
pub async fn check(app_state: State, _: NoInput) -> Result<HealthResponse> {
    let (state, reason) = match app_state.services.store.health().state {
        StoreState::Healthy => return Ok(HealthResponse { status: "ok" }),
        StoreState::Full => ("full", "Disk full: not accepting mail"),
        StoreState::Away(_) => ("away", "Database unavailable: not accepting mail"),
        StoreState::Fenced(_) => ("fenced", "Disk failure: not accepting mail until the process is restarted"),
    };
    Err(Problem::unavailable(reason, RETRY_AFTER_S).with_details(json!({"state": state, "reason": reason})))
}

/// The detailed reason why the store is unhealthy, for the operator's listener.
pub fn unhealthy_reason(health: &Health) -> Result<(), String> {
    match &health.state {
        StoreState::Healthy => Ok(()),
        StoreState::Full => Err("full: no disk space left; not accepting mail".to_owned()),
        StoreState::Away(cause) => Err(format!("away: {cause}; not accepting mail until the database is available")),
        StoreState::Fenced(cause) => Err(format!("fenced: {cause}; restart the process")),
    }
}
