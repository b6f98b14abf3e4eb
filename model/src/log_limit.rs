//! Rate limit for log lines that remote parties can cause.

use std::time::Duration;

/// Lines of one kind per [`WINDOW`].
const LINES_MAX: u32 = 10;
const WINDOW: Duration = Duration::from_secs(60);

/// Limiter for one kind of log line. Times are durations since any fixed moment.
#[derive(Debug, Clone, Default)]
pub struct LogLimit {
    window_began: Duration,
    lines: u32,
    left_out: u64,
}

impl LogLimit {
    /// Returns the number of lines suppressed since the last one, or `None` if this line is to be suppressed too.
    pub fn take(&mut self, now: Duration) -> Option<u64> {
        if now.saturating_sub(self.window_began) >= WINDOW {
            (self.window_began, self.lines) = (now, 0);
        }
        if self.lines >= LINES_MAX {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_minute_are_logged_and_the_rest_counted() {
        let mut limit = LogLimit::default();
        let take = |limit: &mut LogLimit, second| limit.take(Duration::from_secs(second));
        let lines = (0..1_000).filter(|_| take(&mut limit, 100).is_some()).count();
        assert_eq!(lines, 10);
        assert_eq!(take(&mut limit, 159), None);
        assert_eq!(take(&mut limit, 160), Some(991));
        assert_eq!(take(&mut limit, 161), Some(0));
    }
}
