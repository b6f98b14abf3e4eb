//! Commission amount: percent shares and flat amounts, limited by the cap and rounded to the currency's payout step.

use super::rate::{RateGroup, RateShare};
use super::{ArithmeticError, divide_half_up, minus, narrow, plus, times};
use crate::affiliate::money::{BasisPoints, Currency};

/// 100 % in basis points.
const WHOLE: i128 = 10_000;

/// Adds the percent shares of several parts and rounds the sum once, half up.
pub fn percent_of_parts(parts: impl IntoIterator<Item = (i64, BasisPoints)>) -> Result<i64, ArithmeticError> {
    let sum = parts.into_iter().try_fold(0, |sum, (base, points)| plus(sum, times(base, i128::from(points.get()))?))?;
    narrow(divide_half_up(sum, WHOLE)?)
}

/// Returns the commission of rate groups, each with its part of the base: the percent shares, rounded once, plus every
/// flat amount.
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

/// An amount that can be paid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payable {
    /// Whole payout steps of the currency, in minor units.
    pub amount: i64,
    /// True if the amount was lowered to the cap.
    pub is_capped: bool,
}

/// Limits an amount to the cap and rounds it to the currency's payout step: to the nearest step, halves up, but never
/// above the cap.
///
/// # Errors
/// [`ArithmeticError::Negative`] for a negative cap; [`ArithmeticError::TooLarge`] on overflow.
pub fn payable(amount: i64, cap: Option<i64>, currency: Currency) -> Result<Payable, ArithmeticError> {
    let step = i128::from(currency.payout_step());
    let rounded = times(divide_half_up(amount.into(), step)?, step)?;
    match cap {
        Some(cap) if cap < 0 => Err(ArithmeticError::Negative("the commission cap")),
        Some(cap) if i128::from(amount) > i128::from(cap) || rounded > i128::from(cap) => {
            let over = i128::from(cap).checked_rem(step).ok_or(ArithmeticError::Weightless)?;
            Ok(Payable { amount: narrow(minus(cap, over)?)?, is_capped: true })
        }
        _ => Ok(Payable { amount: narrow(rounded)?, is_capped: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_to_steps_and_capped() {
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
        for (amount, cap, currency, wanted, is_capped) in table {
            let currency = currency.parse().unwrap();
            let payable = payable(amount, cap, currency).unwrap();
            assert_eq!(payable, Payable { amount: wanted, is_capped }, "{amount} {currency} under {cap:?}");
        }
        let isk = "isk".parse().unwrap();
        assert_eq!(payable(i64::MAX, None, isk), Ok(Payable { amount: i64::MAX - 7, is_capped: false }));
        assert_eq!(payable(5, Some(-1), isk), Err(ArithmeticError::Negative("the commission cap")));
    }
}
