//! Many at once, each a thread, until all is done; and one line of JSON about it.

use std::error::Error;
use std::io;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Runs `work` in so many threads, each of which gives how long each of its turns took, and prints how many
/// messages that were (`per_turn` in each), in how long, and how long a turn took.
pub(crate) fn at_once(
    threads: usize,
    per_turn: usize,
    work: impl Fn() -> io::Result<Vec<Duration>> + Sync,
) -> Result<(), Box<dyn Error>> {
    let start = clock();
    let outcome: io::Result<Vec<Vec<Duration>>> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&work)).collect();
        running
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread panicked"))))
            .collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut latencies: Vec<Duration> = outcome?.into_iter().flatten().collect();
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

/// Microseconds of the machine's clock, which all processes on it have in common.
#[expect(clippy::disallowed_methods, reason = "measuring time is what a load generator is for")]
pub(crate) fn wall_us() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros())
}

/// Waits until then.
#[expect(
    clippy::disallowed_methods,
    reason = "a rate is kept by waiting, each session on a thread of its own"
)]
pub(crate) fn wait_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}
