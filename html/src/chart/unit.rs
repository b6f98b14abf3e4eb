//! The units of charts.

use super::coordinate::as_f64;
use crate::text::grouped;

/// The unit of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    /// Values are percents: 1.5 is 1.5 %.
    Percent,
    Seconds,
    /// An amount of money, with this many decimals.
    Amount {
        decimals: u8,
    },
}

impl Unit {
    /// The value in full: `1 234`, `0.12 %`, `2.4 s`.
    pub fn exact(self, value: f64) -> String {
        match self {
            Self::Count => grouped(to_count(value)),
            Self::Percent if value >= 10.0 => format!("{value:.1}\u{202f}%"),
            Self::Percent => format!("{value:.2}\u{202f}%"),
            Self::Seconds => duration(value),
            Self::Amount { decimals } => amount(value, decimals),
        }
    }

    /// The value for an axis: `12k`, `0.5 %`.
    pub fn short(self, value: f64) -> String {
        match self {
            Self::Count | Self::Amount { .. } => short_count(value),
            Self::Percent => format!("{}\u{202f}%", plain(value)),
            Self::Seconds => duration(value),
        }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn to_count(value: f64) -> u64 {
    value.round() as u64
}

/// An amount with its thousands grouped: `1 234.50`.
fn amount(value: f64, decimals: u8) -> String {
    let written = format!("{value:.*}", usize::from(decimals));
    match written.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", grouped(whole.parse().unwrap_or_default())),
        None => grouped(written.parse().unwrap_or_default()),
    }
}

/// At most two decimals, none that are zero.
fn plain(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn short_count(value: f64) -> String {
    let sizes = [(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    match sizes.into_iter().find(|(size, _)| value >= *size) {
        Some((size, letter)) if value / size >= 1e4 => format!("{}{letter}", grouped(to_count(value / size))),
        Some((size, letter)) => format!("{}{letter}", plain(value / size)),
        None => plain(value),
    }
}

/// A duration in the largest unit that fits.
fn duration(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 3_600.0;
    const DAY: f64 = 86_400.0;
    if seconds == 0.0 {
        "0\u{202f}s".to_owned()
    } else if seconds < 1.0 {
        format!("{}\u{202f}ms", to_count(seconds * 1e3))
    } else if seconds < MINUTE {
        format!("{}\u{202f}s", plain((seconds * 10.0).round() / 10.0))
    } else if seconds < HOUR {
        format!("{}\u{202f}min", plain((seconds / MINUTE * 10.0).round() / 10.0))
    } else if seconds < 2.0 * DAY {
        format!("{}\u{202f}h", plain((seconds / HOUR * 10.0).round() / 10.0))
    } else {
        format!("{}\u{202f}d", plain((seconds / DAY * 10.0).round() / 10.0))
    }
}

/// The share of a part in a whole, in percent; `None` without a whole.
pub fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| as_f64(part) / as_f64(whole) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_in_their_unit() {
        let exact = |unit: Unit, value| unit.exact(value).replace('\u{202f}', " ");
        let short = |unit: Unit, value| unit.short(value).replace('\u{202f}', " ");
        assert_eq!((exact(Unit::Count, 12_345.0), short(Unit::Count, 12_500.0)), ("12 345".into(), "12.5k".into()));
        assert_eq!((exact(Unit::Percent, 0.087), exact(Unit::Percent, 98.64)), ("0.09 %".into(), "98.6 %".into()));
        assert_eq!((short(Unit::Percent, 0.5), short(Unit::Percent, 100.0)), ("0.5 %".into(), "100 %".into()));
        for (seconds, text) in
            [(0.0, "0 s"), (0.24, "240 ms"), (2.44, "2.4 s"), (90.0, "1.5 min"), (7_200.0, "2 h"), (3e5, "3.5 d")]
        {
            assert_eq!(exact(Unit::Seconds, seconds), text);
        }
        let euros = Unit::Amount { decimals: 2 };
        assert_eq!((exact(euros, 1_234.5), short(euros, 1_500.0)), ("1 234.50".into(), "1.5k".into()));
        assert_eq!(exact(Unit::Amount { decimals: 0 }, 1_000.0), "1 000");
        assert_eq!(short(Unit::Count, u64::MAX as f64), "18 447P");
        assert_eq!((percent(1, 4), percent(1, 0)), (Some(25.0), None));
    }
}
