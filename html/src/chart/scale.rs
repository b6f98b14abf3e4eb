//! The scale of an axis: round steps from zero to at least the largest value.

use super::unit::Unit;

/// A scale from zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    /// The value of the top; positive.
    pub(super) top: f64,
    step: f64,
}

/// Steps of a scale.
const STEPS: f64 = 4.0;

/// Days, hours and minutes in seconds: steps are round in the unit in which they are written.
const TIME_UNITS: [f64; 3] = [86_400.0, 3_600.0, 60.0];

impl Scale {
    /// A scale for values up to `max`.
    pub(super) fn new(max: f64, unit: Unit) -> Self {
        let max = if max > 0.0 && max.is_finite() { max } else { 1.0 };
        let at_least = max / STEPS;
        let step = match unit {
            Unit::Count => round_up(at_least, &[1.0, 2.0, 5.0, 10.0]).max(1.0),
            Unit::Percent | Unit::Amount { .. } => round_up(at_least, &[1.0, 2.0, 2.5, 5.0, 10.0]),
            Unit::Seconds => {
                let unit = TIME_UNITS.into_iter().find(|unit| at_least >= *unit).unwrap_or(1.0);
                round_up(at_least / unit, &[1.0, 2.0, 2.5, 5.0, 10.0]) * unit
            }
        };
        Self { top: (max / step).ceil().max(1.0) * step, step }
    }

    /// The place of a value from the bottom, in percent of the height.
    pub(super) fn height(self, value: f64) -> f64 {
        (value / self.top * 100.0).clamp(0.0, 100.0)
    }

    /// The values of the grid lines, from zero on.
    pub(super) fn ticks(self) -> impl Iterator<Item = f64> {
        let count = (0..=5_u8).map(f64::from);
        count.map(move |n| n * self.step).take_while(move |value| *value <= self.top * 1.000_1)
    }
}

/// The smallest of these digits times a power of ten that is not less than a value.
fn round_up(value: f64, digits: &[f64]) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digit = digits.iter().find(|digit| **digit * power >= value * 0.999_999).copied().unwrap_or(10.0);
    digit * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round() {
        for (max, unit, ticks) in [
            (0.0, Unit::Count, vec![0.0, 1.0]),
            (3.0, Unit::Count, vec![0.0, 1.0, 2.0, 3.0]),
            (98.6, Unit::Percent, vec![0.0, 25.0, 50.0, 75.0, 100.0]),
            (100.0, Unit::Percent, vec![0.0, 25.0, 50.0, 75.0, 100.0]),
            (420.0, Unit::Count, vec![0.0, 200.0, 400.0, 600.0]),
            (3_000.0, Unit::Seconds, vec![0.0, 1_200.0, 2_400.0, 3_600.0]),
            (f64::NAN, Unit::Seconds, vec![0.0, 0.25, 0.5, 0.75, 1.0]),
        ] {
            assert_eq!(Scale::new(max, unit).ticks().collect::<Vec<_>>(), ticks, "{max}");
        }
    }

    #[test]
    fn every_value_has_a_place() {
        for max in [1e-9, 0.013, 1.0, 7.3, 1e6, 1.8e19] {
            let scale = Scale::new(max, Unit::Percent);
            assert!(scale.top >= max * 0.999 && scale.ticks().count() <= 6, "{max}: {scale:?}");
            assert!((0.0..=100.0).contains(&scale.height(max)));
        }
    }
}
