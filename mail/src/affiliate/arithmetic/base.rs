//! The commissionable base `B` of a sale: what was really paid, less tax.
//!
//! Coupons make `total` smaller, account credit and partial payments `amount_paid`; all of them so shrink the base.

use super::{ArithmeticError, half_up, less, narrow, times};
use crate::affiliate::sale::Sale;

/// The base of a sale; `None` when nothing was paid for it, which is no sale at all: it earns nothing and converts
/// nobody.
///
/// `B = round(total_excluding_tax × amount_paid / total)`, halves up; `total − tax` stands for a `total_excluding_tax`
/// that is not said.
///
/// # Errors
/// Figures that are too large.
pub fn base(sale: &Sale) -> Result<Option<i64>, ArithmeticError> {
    if sale.total <= 0 || sale.amount_paid <= 0 {
        return Ok(None);
    }
    let without_tax = less(sale.total, tax(sale)?)?;
    let base = narrow(half_up(times(without_tax, sale.amount_paid)?, sale.total.into())?)?;
    Ok(Some(base).filter(|base| *base > 0))
}

/// The tax in a sale's total.
///
/// # Errors
/// Figures that are too large.
pub fn tax(sale: &Sale) -> Result<i64, ArithmeticError> {
    match sale.total_excluding_tax {
        Some(without_tax) => narrow(less(sale.total, without_tax)?),
        None => Ok(sale.tax),
    }
}
