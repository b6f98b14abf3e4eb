//! What a commission comes to: shares of parts of the base, fixed amounts, the most that it may be, and the currency's
//! step.

use super::rate::{RateGroup, RateShare};
use super::{ArithmeticError, divide_half_up, minus, narrow, plus, times};
use crate::affiliate::money::{BasisPoints, Currency};

/// Basis points of a whole.
const WHOLE: i128 = 10_000;

/// Shares of several parts, rounded once, halves up.
///
/// # Errors
/// Figures that are too large.
pub fn percent_of_parts(parts: impl IntoIterator<Item = (i64, BasisPoints)>) -> Result<i64, ArithmeticError> {
    let sum = parts.into_iter().try_fold(0, |sum, (base, points)| plus(sum, times(base, i128::from(points.get()))?))?;
    narrow(divide_half_up(sum, WHOLE)?)
}

/// What groups earn, each with so much of the base: the shares, rounded once, and each fixed amount.
///
/// # Errors
/// Figures that are too large.
pub fn sum_of_groups<'a>(groups: impl IntoIterator<Item = (&'a RateGroup, i64)>) -> Result<i64, ArithmeticError> {
    let (mut shares, mut flat) = (Vec::new(), 0);
    for (group, base) in groups {
        match group.share {
            RateShare::Percent(points) => shares.push((base, points)),
            RateShare::Flat(amount) => flat = plus(flat, amount)?,
            RateShare::OtherCurrency(_) | RateShare::Excluded => {}
        }
    }
    narrow(plus(percent_of_parts(shares)?, flat)?)
}

/// An amount as it can be paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payable {
    /// The amount, in whole steps of its currency.
    pub amount: i64,
    /// Whether it would be more without a cap.
    pub is_capped: bool,
}

/// Brings an amount under the most that it may be, and to a whole number of its currency's steps: the nearest, halves
/// up, but never above the cap.
///
/// # Errors
/// A negative cap; figures that are too large.
pub fn payable(amount: i64, most: Option<i64>, currency: Currency) -> Result<Payable, ArithmeticError> {
    let step = i128::from(currency.payout_step());
    let rounded = times(divide_half_up(amount.into(), step)?, step)?;
    match most {
        Some(most) if most < 0 => Err(ArithmeticError::Negative("the most that a sale earns")),
        Some(most) if i128::from(amount) > i128::from(most) || rounded > i128::from(most) => {
            let over = i128::from(most).checked_rem(step).ok_or(ArithmeticError::Weightless)?;
            Ok(Payable { amount: narrow(minus(most, over)?)?, is_capped: true })
        }
        _ => Ok(Payable { amount: narrow(rounded)?, is_capped: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_caps() {
        let table = [
            // amount, cap, currency, payable, capped
            (980, None, "usd", 980, false),
            (980, Some(980), "usd", 980, false),
            (981, Some(980), "usd", 980, true),
            (5, Some(0), "usd", 0, true),
            (774, None, "kwd", 770, false),
            (775, None, "kwd", 780, false),
            (775, Some(778), "kwd", 770, true),
            (149, None, "isk", 100, false),
            (150, None, "isk", 200, false),
            (49, None, "isk", 0, false),
            (333, None, "jpy", 333, false),
        ];
        for (amount, most, currency, wanted, is_capped) in table {
            let currency = currency.parse().unwrap();
            let payable = payable(amount, most, currency).unwrap();
            assert_eq!(payable, Payable { amount: wanted, is_capped }, "{amount} {currency} under {most:?}");
        }
        let isk = "isk".parse().unwrap();
        assert_eq!(payable(i64::MAX, None, isk), Ok(Payable { amount: i64::MAX - 7, is_capped: false }));
        assert_eq!(payable(5, Some(-1), isk), Err(ArithmeticError::Negative("the most that a sale earns")));
    }
}
