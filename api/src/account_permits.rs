//! Permits for work of which an account may have one at a time, because it takes long.

use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

use model::id::AccountId;

/// The accounts whose permit is taken. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct AccountPermits(Arc<Mutex<HashSet<AccountId>>>);

/// The permit of an account, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct AccountPermit {
    permits: AccountPermits,
    account: AccountId,
}

impl AccountPermits {
    /// Takes an account's permit; `None` if it is taken.
    pub(crate) fn try_acquire(&self, account: AccountId) -> Option<AccountPermit> {
        let mut taken = self.0.lock();
        taken.insert(account).then(|| AccountPermit { permits: self.clone(), account })
    }
}

impl Drop for AccountPermit {
    fn drop(&mut self) {
        self.permits.0.lock().remove(&self.account);
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn an_account_has_one_permit() {
        let permits = AccountPermits::default();
        let account = |number| AccountId::new(Timestamp::UNIX_EPOCH, number);
        let first = permits.try_acquire(account(1)).unwrap();
        assert!(permits.try_acquire(account(1)).is_none() && permits.try_acquire(account(2)).is_some());
        drop(first);
        assert!(permits.try_acquire(account(1)).is_some());
    }
}
