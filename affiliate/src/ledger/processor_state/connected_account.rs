//! Connected account of a partner: whether it can receive transfers.

use serde::{Deserialize, Serialize};

use super::lww_register::LwwRegister;
use crate::processor::ConnectedAccount;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ConnectedAccountState {
    takes_transfers: Option<LwwRegister<bool>>,
}

impl ConnectedAccountState {
    /// Merges an update. Returns whether the account can receive transfers, as far as known.
    pub(crate) fn apply(&mut self, account: &ConnectedAccount) -> bool {
        LwwRegister::merge(&mut self.takes_transfers, account.as_of, account.takes_transfers);
        self.takes_transfers.as_ref().is_some_and(|newest| newest.value)
    }
}
