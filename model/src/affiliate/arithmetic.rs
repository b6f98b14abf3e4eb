//! Commission arithmetic: small pure rules, one per file, that [`super::recompute`] combines.
//!
//! ```text
//! sale ─► base (amount paid, less tax) ─► split (among the groups of lines with one rate)
//!                                                     │
//! campaign, override, customers ─► rate ──────────────┴─► amount (percent, flat, cap, step)
//! refunds ─► remaining (the base that is left) ───────────┘
//! ```
//!
//! Amounts are `i64` minor units, intermediate results are `i128`, and every operation is checked. Overflow returns an
//! [`ArithmeticError`]; it never wraps and never panics. Each formula rounds once, at its end, half up.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

pub mod amount;
pub mod base;
pub mod person;
pub mod rate;
pub mod refund;
pub mod split;

use thiserror::Error;

/// A commission cannot be computed from these numbers, which come from the payment processor or from a campaign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ArithmeticError {
    /// A result or an intermediate result overflows.
    #[error("an amount is too large")]
    TooLarge,
    /// An amount that must not be negative is negative; the text names the amount.
    #[error("{0} is negative")]
    Negative(&'static str),
    /// The weights of a split are all zero, or a divisor is zero.
    #[error("an amount cannot be divided by zero")]
    Weightless,
    /// A computed time is outside the range of the calendar.
    #[error("a time is out of range")]
    BeyondTime,
}

/// Converts an intermediate result back to minor units in `i64`.
fn narrow(amount: i128) -> Result<i64, ArithmeticError> {
    i64::try_from(amount).map_err(|_| ArithmeticError::TooLarge)
}

fn times(a: impl Into<i128>, b: impl Into<i128>) -> Result<i128, ArithmeticError> {
    a.into().checked_mul(b.into()).ok_or(ArithmeticError::TooLarge)
}

fn plus(a: impl Into<i128>, b: impl Into<i128>) -> Result<i128, ArithmeticError> {
    a.into().checked_add(b.into()).ok_or(ArithmeticError::TooLarge)
}

fn minus(a: impl Into<i128>, b: impl Into<i128>) -> Result<i128, ArithmeticError> {
    a.into().checked_sub(b.into()).ok_or(ArithmeticError::TooLarge)
}

/// Divides and rounds to the nearest whole number, halves up. The divisor is positive.
fn divide_half_up(amount: i128, divisor: i128) -> Result<i128, ArithmeticError> {
    let quotient = amount.checked_div_euclid(divisor).ok_or(ArithmeticError::Weightless)?;
    let rest = amount.checked_rem_euclid(divisor).ok_or(ArithmeticError::Weightless)?;
    // Equals rest + rest >= divisor, but cannot overflow.
    if rest >= minus(divisor, rest)? { plus(quotient, 1) } else { Ok(quotient) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_rounded_up() {
        let table = [(0, 1, 0), (1, 2, 1), (4, 10, 0), (5, 10, 1), (14, 10, 1), (15, 10, 2), (-5, 10, 0), (-6, 10, -1)];
        for (amount, divisor, rounded) in table {
            assert_eq!(divide_half_up(amount, divisor), Ok(rounded), "{amount} / {divisor}");
        }
        assert_eq!(divide_half_up(i128::MAX, 1), Ok(i128::MAX));
        assert_eq!(divide_half_up(i128::MAX, i128::MAX), Ok(1));
        assert_eq!(divide_half_up(7, 0), Err(ArithmeticError::Weightless));
    }
}
