//! The commissionable base `B` of a sale: what was really paid, less tax.
//!
//! Coupons make `total` smaller, account credit and partial payments `amount_paid`; all of them so shrink the base.

use super::{ArithmeticError, divide_half_up, minus, narrow, times};
use crate::affiliate::sale::Sale;

/// The base of a sale; `None` when nothing was paid for it, which is no sale at all: it earns nothing and converts
/// nobody.
///
/// `B = round(total_excluding_tax × amount_paid / total)`, halves up; `total − tax` stands for a `total_excluding_tax`
/// that is not said.
///
/// # Errors
/// Figures that are too large.
pub fn commissionable_base(sale: &Sale) -> Result<Option<i64>, ArithmeticError> {
    if sale.total <= 0 || sale.amount_paid <= 0 {
        return Ok(None);
    }
    let without_tax = minus(sale.total, tax_of_sale(sale)?)?;
    let base = narrow(divide_half_up(times(without_tax, sale.amount_paid)?, sale.total.into())?)?;
    Ok(Some(base).filter(|base| *base > 0))
}

/// The tax in a sale's total.
///
/// # Errors
/// Figures that are too large.
pub fn tax_of_sale(sale: &Sale) -> Result<i64, ArithmeticError> {
    match sale.total_excluding_tax {
        Some(without_tax) => narrow(minus(sale.total, without_tax)?),
        None => Ok(sale.tax),
    }
}
