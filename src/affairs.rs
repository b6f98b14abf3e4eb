//! What the affiliate program does by itself, for as long as the server runs: each is an endless loop over the partitions
//! that this node owns.

use affiliate::office::AffiliateService;
use queue::accept::Intake;
use tokio_util::sync::CancellationToken;

/// Runs all of it until `stop`.
pub async fn run(hall: Intake, stop: CancellationToken) {
    let office = AffiliateService::new(hall);
    let others = run_other_jobs(&office, &stop);
    // It has something to write down when it stops.
    tokio::join!(office.run_backfills(stop.cancelled()), others);
}

async fn run_other_jobs(office: &AffiliateService, stop: &CancellationToken) {
    tokio::select! {
        () = office.run_hold_release() => {}
        () = office.run_reconciliation() => {}
        () = office.run_payout_jobs() => {}
        () = office.run_click_counting() => {}
        () = office.run_partner_emails() => {}
        () = stop.cancelled() => {}
    }
}
