//! The affiliate service that the API's handlers use, on a store on disk, with a live program.

use accounts::subsystems::{AccountSubsystems, Subsystems, idle};
use affiliate::context::Context;
use affiliate::service::AffiliateService;
use jiff::Timestamp;
use model::id::AccountId;
use net::clock::Clock;
use net::entropy::Entropy;
use store::engine::Store;

pub(crate) struct Fixture {
    pub(crate) service: AffiliateService,
    pub(crate) account: AccountId,
    /// Time at which the store was opened.
    pub(crate) now: Timestamp,
}

impl Fixture {
    /// Opens the service without background tasks.
    pub(crate) async fn open(store: Store) -> Self {
        let now = Clock::default().now();
        let account = AccountId::new(now, Entropy::default().u128());
        let queue = Subsystems::new(idle::parts(store), idle::settings());
        queue.cluster.join().await.unwrap();
        let accounts = AccountSubsystems::new(&queue, idle::account_parts());
        Self { service: AffiliateService::new(&queue, &accounts), account, now }
    }

    pub(crate) fn store(&self) -> &Store {
        self.service.ledger.store()
    }

    pub(crate) fn ledger(&self) -> Context {
        self.service.ledger.clone()
    }
}
