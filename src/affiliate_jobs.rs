//! Background jobs of the affiliate program: endless loops over the partitions that this node owns.

use affiliate::service::AffiliateService;
use queue::intake::Intake;
use tokio_util::sync::CancellationToken;

/// Runs all jobs until `stop`.
pub async fn run(intake: Intake, stop: CancellationToken) {
    let service = AffiliateService::new(intake);
    let other_jobs = run_other_jobs(&service, &stop);
    // Backfills store their position on shutdown, so they are awaited; the other jobs are dropped.
    tokio::join!(service.run_backfills(stop.cancelled()), other_jobs);
}

async fn run_other_jobs(service: &AffiliateService, stop: &CancellationToken) {
    tokio::select! {
        () = service.run_hold_release() => {}
        () = service.run_reconciliation() => {}
        () = service.run_payout_jobs() => {}
        () = service.run_click_counting() => {}
        () = service.run_partner_emails() => {}
        () = stop.cancelled() => {}
    }
}
