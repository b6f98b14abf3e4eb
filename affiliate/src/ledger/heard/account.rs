//! A partner's own account at the processor: whether money can be transferred to it.

use serde::{Deserialize, Serialize};

use super::Newest;
use crate::processor::ConnectedAccount;

/// What is known of an account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct HeardAccount {
    takes_transfers: Option<Newest<bool>>,
}

impl HeardAccount {
    /// Hears how it stands. Whether money can be transferred to it, as far as is known.
    pub(crate) fn hear(&mut self, account: &ConnectedAccount) -> bool {
        Newest::hear(&mut self.takes_transfers, account.as_of, account.takes_transfers);
        self.takes_transfers.as_ref().is_some_and(|newest| *newest.value())
    }
}
