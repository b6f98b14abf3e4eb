//! Invoice line.

use mail::affiliate::sale::SaleLine;

use super::super::json_reader::{JsonReadError, ProcessorJsonObject};

/// Parses a line. A proration credit has only negative amounts.
pub(super) fn read(line: &ProcessorJsonObject<'_>) -> Result<SaleLine, JsonReadError> {
    let discount = line.sum("discount_amounts", |_| true)?;
    Ok(SaleLine {
        amount: line.required_amount("amount")?,
        discount: discount.unwrap_or(0),
        inclusive_tax: inclusive_tax(line)?,
        pretax_credit: line
            .sum("pretax_credit_amounts", |credit| is_separate_from_discount(credit, discount))?
            .unwrap_or(0),
        price: line.first_id(&["price", "pricing.price_details.price", "plan"])?,
        product: line.first_id(&["price.product", "plan.product", "pricing.price_details.product"])?,
    })
}

/// Returns the tax included in the line's amount: from `taxes` (Basil), else `tax_amounts`.
fn inclusive_tax(line: &ProcessorJsonObject<'_>) -> Result<i64, JsonReadError> {
    let taxes = line.sum("taxes", |tax| tax.has_text("tax_behavior", "inclusive"))?;
    let tax = match taxes {
        Some(tax) => Some(tax),
        None => line.sum("tax_amounts", |tax| tax.find("inclusive") == Some("true"))?,
    };
    Ok(tax.unwrap_or(0))
}

/// True if a credit is not one of the discounts already counted: the list of credits contains those as well.
fn is_separate_from_discount(credit: &ProcessorJsonObject<'_>, discount: Option<i64>) -> bool {
    discount.is_none() || !credit.has_text("type", "discount")
}
