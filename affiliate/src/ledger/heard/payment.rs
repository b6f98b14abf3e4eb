//! A payment: what stands between an invoice and the charges that paid it, in the processor's later shape.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{TooManyEntries, bounded_insert};

/// What is known of a payment intent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PaymentState {
    invoices: BTreeSet<String>,
    charges: BTreeSet<String>,
}

impl PaymentState {
    /// It paid an invoice.
    pub(crate) fn add_invoice(&mut self, invoice: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.invoices, invoice, "invoices of a payment")
    }

    /// It is a charge.
    pub(crate) fn add_charge(&mut self, charge: &str) -> Result<(), TooManyEntries> {
        bounded_insert(&mut self.charges, charge, "charges of a payment")
    }

    /// The invoices that it paid.
    pub(crate) fn invoices(&self) -> &BTreeSet<String> {
        &self.invoices
    }

    /// The charges that were tried with it.
    pub(crate) fn charges(&self) -> &BTreeSet<String> {
        &self.charges
    }
}
