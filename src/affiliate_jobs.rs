//! Background jobs of the affiliate program: endless loops over the partitions that this node owns.

use affiliate::service::AffiliateService;
use queue::intake::Intake;
use tokio_util::sync::CancellationToken;

/// Runs all jobs until `stop`.
pub async fn run(intake: Intake, stop: CancellationToken) {
    AffiliateService::new(intake).run(|| stop.cancelled()).await;
}
