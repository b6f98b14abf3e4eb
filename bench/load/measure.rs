//! Runs concurrent workers until all have finished and prints one line of JSON about them.
//!
//! All workers run on one thread, as in smtp-source: switching between threads costs the machine, and through its
//! kernel also the server, more CPU time than the SMTP session itself.

use std::error::Error;
use std::future::Future;
use std::io;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;

/// Runs `count` workers concurrently. Each returns the latencies of its rounds. Prints the number of messages
/// (`per_turn` in each round), the total time, and the median and 99th percentile of a round.
pub(crate) fn at_once<F>(count: usize, per_turn: usize, work: impl Fn() -> F) -> Result<(), Box<dyn Error>>
where
    F: Future<Output = io::Result<Vec<Duration>>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let start = clock();
    let mut latencies: Vec<Duration> = runtime.block_on(async {
        let mut running = JoinSet::new();
        for _ in 0..count {
            running.spawn(work());
        }
        let mut latencies = Vec::new();
        while let Some(ended) = running.join_next().await {
            latencies.extend(ended.map_err(io::Error::other)??);
        }
        io::Result::Ok(latencies)
    })?;
    let seconds = start.elapsed().as_secs_f64();
    latencies.sort_unstable();
    println!(
        "{{\"messages\":{},\"seconds\":{seconds:.6},\"p50_ms\":{:.3},\"p99_ms\":{:.3}}}",
        latencies.len() * per_turn,
        quantile_ms(&latencies, 50),
        quantile_ms(&latencies, 99),
    );
    Ok(())
}

fn quantile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let index = sorted.len().saturating_sub(1) * percent / 100;
    sorted.get(index).map_or(0.0, |d| d.as_secs_f64() * 1e3)
}

#[expect(clippy::disallowed_methods, reason = "measuring time is what a load generator is for")]
pub(crate) fn clock() -> Instant {
    Instant::now()
}

/// Wall clock in microseconds since 1970: comparable between the processes of one machine.
#[expect(clippy::disallowed_methods, reason = "measuring time is what a load generator is for")]
pub(crate) fn wall_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros())
}

/// Sleeps until the instant, with millisecond resolution.
pub(crate) async fn wait_until(moment: Instant) {
    tokio::time::sleep_until(moment.into()).await;
}
