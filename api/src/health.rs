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
    let health = app_state.services.store.health();
    let (state, reason) = match health.service_state() {
        StoreState::Healthy if app_state.services.leases.any().is_some() => {
            return Ok(HealthResponse { status: "ok" });
        }
        StoreState::Healthy => ("no_partition", "This node owns no part of the queue now: not accepting mail"),
        StoreState::Full if health.space_error.is_some() => ("full", "Disk failure: not accepting mail"),
        StoreState::Full => ("full", "Disk full: not accepting mail"),
        StoreState::Away(_) => ("away", "Database unavailable: not accepting mail"),
        StoreState::Fenced(_) => ("fenced", "Disk failure: not accepting mail until the process is restarted"),
    };
    Err(Problem::unavailable(reason, RETRY_AFTER_S).with_details(json!({"state": state, "reason": reason})))
}

/// The detailed reason why no mail is accepted, for the operator's listener. Without a partition of the queue a node has
/// nowhere to put mail: `no_partition` is the reason if it has none.
pub fn unhealthy_reason(health: &Health, no_partition: Option<&str>) -> Result<(), String> {
    match (health.service_state(), no_partition) {
        (StoreState::Healthy, None) => Ok(()),
        (StoreState::Healthy, Some(reason)) => Err(format!("no partition: {reason}; not accepting mail")),
        (StoreState::Full, _) => Err(match &health.space_error {
            Some(error) => format!("full: the free disk space cannot be read: {error}; not accepting mail"),
            None => {
                "full: no disk space is left, or none for the reserve (`reserve_bytes`); not accepting mail".to_owned()
            }
        }),
        (StoreState::Away(cause), _) => {
            Err(format!("away: {cause}; not accepting mail until the database is available"))
        }
        (StoreState::Fenced(cause), _) => Err(format!("fenced: {cause}; restart the process")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_reads_are_a_reason() {
        assert_eq!(unhealthy_reason(&Health::default(), None), Ok(()));
        let reason = unhealthy_reason(&Health::default(), Some("the lease has expired")).unwrap_err();
        assert_eq!(reason, "no partition: the lease has expired; not accepting mail");
        let reads_fail = Health { reads_fail: true, ..Health::default() };
        let reason = unhealthy_reason(&reads_fail, None).unwrap_err();
        assert!(reason.starts_with("away: reads fail"), "{reason}");
        let fenced = Health { state: StoreState::Fenced("broken".into()), ..reads_fail };
        assert!(unhealthy_reason(&fenced, None).unwrap_err().starts_with("fenced: broken"));
    }
}
