//! Payment intent: links an invoice to the charges that paid it (API since Basil).

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::bounded::{TooManyEntries, bounded_insert};

/// State of a payment intent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PaymentState {
    /// Invoices that the payment paid.
    pub(crate) invoices: BTreeSet<String>,
    /// Charges that were attempted with the payment.
    pub(crate) charges: BTreeSet<String>,
}

impl PaymentState {
    /// Records that the payment paid an invoice.
    pub(crate) fn add_invoice(&mut self, invoice: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.invoices, invoice, "invoices of a payment")
    }

    /// Records a charge of the payment.
    pub(crate) fn add_charge(&mut self, charge: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.charges, charge, "charges of a payment")
    }
}
