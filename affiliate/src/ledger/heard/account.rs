//! A partner's own account at the processor: whether money can be transferred to it.

use serde::{Deserialize, Serialize};

use super::LwwRegister;
use crate::processor::ConnectedAccount;

/// What is known of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConnectedAccountState {
    takes_transfers: Option<LwwRegister<bool>>,
}

impl ConnectedAccountState {
    /// Hears how it stands. Whether money can be transferred to it, as far as is known.
    pub(crate) fn apply(&mut self, account: &ConnectedAccount) -> bool {
        LwwRegister::merge(&mut self.takes_transfers, account.as_of, account.takes_transfers);
        self.takes_transfers.as_ref().is_some_and(|newest| *newest.value())
    }
}
