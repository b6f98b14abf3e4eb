//! Waits for a database that is unavailable while a server starts, for example during a fail-over. Once the store is
//! open and the server runs, the engine reconnects by itself.

use std::time::Duration;

/// Pause after the first failure; it doubles with each one.
const PAUSE_FIRST: Duration = Duration::from_millis(250);
/// Longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Repeats a step of the start while it fails because the database is unavailable, as `is_away` tells. Calls `waiting`
/// after each such failure.
///
/// # Errors
/// The first other error of the step.
pub async fn retry_while_away<T, E, F: Future<Output = Result<T, E>>>(
    mut step: impl FnMut() -> F,
    is_away: impl Fn(&E) -> bool,
    mut waiting: impl FnMut(&E),
) -> Result<T, E> {
    let mut pause = PAUSE_FIRST;
    loop {
        match step().await {
            Err(error) if is_away(&error) => waiting(&error),
            done => return done,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;
    use crate::engine::ReadError;

    #[tokio::test(start_paused = true)]
    async fn a_step_is_repeated_only_while_the_database_is_away() {
        let (tries, failed_at) = (&Cell::new(0_u32), &RefCell::new(Vec::new()));
        let started = tokio::time::Instant::now();
        let fail = |then: Result<u32, ReadError>| {
            retry_while_away(
                move || {
                    tries.set(tries.get() + 1);
                    let is_back = tries.get().is_multiple_of(6);
                    let result = if is_back { then.clone() } else { Err(ReadError::Away("gone".into())) };
                    async move { result }
                },
                ReadError::is_away,
                move |_| failed_at.borrow_mut().push(started.elapsed().as_millis()),
            )
        };
        assert_eq!(fail(Ok(7)).await.unwrap(), 7);
        assert_eq!(*failed_at.borrow(), [0, 250, 750, 1_750, 3_750]);
        let damaged = fail(Err(ReadError::Corrupt("row".into()))).await;
        assert!(matches!(damaged, Err(ReadError::Corrupt(_))), "{damaged:?}");
        assert_eq!(tries.get(), 12);
    }
}
