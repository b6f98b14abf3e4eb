//! The commissionable base `B` of a sale: the amount that was paid, less tax.
//!
//! Coupons lower `total`; account credit and partial payments lower `amount_paid`. Each of them lowers the base.

use super::{ArithmeticError, divide_half_up, minus, narrow, times};
use crate::affiliate::sale::Sale;

/// Returns the base of a sale, or `None` if nothing was paid. A sale without payment earns no commission and does not
/// make the person a customer.
///
/// `B = round(total_excluding_tax × amount_paid / total)`, halves up. If `total_excluding_tax` is missing, `total −
/// tax` is used.
pub fn commissionable_base(sale: &Sale) -> Result<Option<i64>, ArithmeticError> {
    if sale.total <= 0 || sale.amount_paid <= 0 {
        return Ok(None);
    }
    let without_tax = minus(sale.total, tax_of_sale(sale)?)?;
    let base = narrow(divide_half_up(times(without_tax, sale.amount_paid)?, sale.total.into())?)?;
    Ok(Some(base).filter(|base| *base > 0))
}

/// Returns the tax that a sale's total includes.
pub fn tax_of_sale(sale: &Sale) -> Result<i64, ArithmeticError> {
    match sale.total_excluding_tax {
        Some(without_tax) => narrow(minus(sale.total, without_tax)?),
        None => Ok(sale.tax),
    }
}
