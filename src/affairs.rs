//! What the affiliate program does by itself, for as long as the server runs: each is an endless loop over the partitions
//! that this node owns.

use affiliate::office::Office;
use queue::accept::Hall;
use tokio_util::sync::CancellationToken;

/// Runs all of it until `stop`.
pub async fn run(hall: Hall, stop: CancellationToken) {
    let office = Office::new(hall);
    let others = others(&office, &stop);
    // It has something to write down when it stops.
    tokio::join!(office.keep_backfilling(stop.cancelled()), others);
}

async fn others(office: &Office, stop: &CancellationToken) {
    tokio::select! {
        () = office.keep_ending_holds() => {}
        () = office.keep_comparing() => {}
        () = office.keep_paying_out() => {}
        () = office.keep_counting_clicks() => {}
        () = office.keep_writing_letters() => {}
        () = stop.cancelled() => {}
    }
}
