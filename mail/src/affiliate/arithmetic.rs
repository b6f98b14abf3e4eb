//! The arithmetic of commissions: small rules, each with a file of its own, that [`super::recompute`] puts together.
//!
//! ```text
//! sale ─► base (what was really paid, less tax) ─► split (among the groups of lines that have one rate)
//!                                                     │
//! campaign, override, customers ─► rate ──────────────┴─► amount (percent, flat, cap, step)
//! refunds ─► remaining (what is left of the base) ────────┘
//! ```
//!
//! All of it in `i64` minor units, with `i128` in between, and every step checked: what is beyond that is an
//! [`ArithmeticError`], never a wrap and never a panic. Rounding is half up, once at the end of each formula.

#![deny(clippy::float_arithmetic, clippy::as_conversions, clippy::arithmetic_side_effects)]

pub mod amount;
pub mod base;
pub mod person;
pub mod rate;
pub mod refund;
pub mod split;

use thiserror::Error;

/// Figures that nothing can be computed from. They come from outside: the processor's, or a campaign's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ArithmeticError {
    /// A result, or a step towards it, does not fit.
    #[error("an amount is larger than can be counted")]
    TooLarge,
    /// An amount is below zero that never is.
    #[error("{0} is negative")]
    Negative(&'static str),
    /// Something is to be split among parts that weigh nothing.
    #[error("there is nothing to split it by")]
    Weightless,
    /// A time is beyond the calendar.
    #[error("a time is beyond the calendar")]
    BeyondTime,
}

/// An amount back in the width of the books.
fn narrow(amount: i128) -> Result<i64, ArithmeticError> {
    i64::try_from(amount).map_err(|_| ArithmeticError::TooLarge)
}

/// The product of two figures.
fn times(a: impl Into<i128>, b: impl Into<i128>) -> Result<i128, ArithmeticError> {
    a.into().checked_mul(b.into()).ok_or(ArithmeticError::TooLarge)
}

/// The sum of two figures.
fn plus(a: impl Into<i128>, b: impl Into<i128>) -> Result<i128, ArithmeticError> {
    a.into().checked_add(b.into()).ok_or(ArithmeticError::TooLarge)
}

/// What is left when one figure is taken from another.
fn minus(a: impl Into<i128>, b: impl Into<i128>) -> Result<i128, ArithmeticError> {
    a.into().checked_sub(b.into()).ok_or(ArithmeticError::TooLarge)
}

/// A quotient, rounded to the nearest whole number and halves up. The divisor is positive.
fn divide_half_up(amount: i128, divisor: i128) -> Result<i128, ArithmeticError> {
    let quotient = amount.checked_div_euclid(divisor).ok_or(ArithmeticError::Weightless)?;
    let rest = amount.checked_rem_euclid(divisor).ok_or(ArithmeticError::Weightless)?;
    // rest + rest >= divisor, without the sum that could be too large.
    if rest >= minus(divisor, rest)? { plus(quotient, 1) } else { Ok(quotient) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_go_up() {
        let table = [(0, 1, 0), (1, 2, 1), (4, 10, 0), (5, 10, 1), (14, 10, 1), (15, 10, 2), (-5, 10, 0), (-6, 10, -1)];
        for (amount, divisor, rounded) in table {
            assert_eq!(divide_half_up(amount, divisor), Ok(rounded), "{amount} / {divisor}");
        }
        assert_eq!(divide_half_up(i128::MAX, 1), Ok(i128::MAX));
        assert_eq!(divide_half_up(i128::MAX, i128::MAX), Ok(1));
        assert_eq!(divide_half_up(7, 0), Err(ArithmeticError::Weightless));
    }
}
