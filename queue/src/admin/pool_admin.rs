//! Operator commands on source pools: the pool of an account, and the warm-up of a pool.

use std::collections::{BTreeMap, HashMap};

use model::id::AccountId;
use model::pool::WarmUpOverride;
use model::slug::PoolName;
use store::engine::{Batch, CommitError, ReadError};
use store::pool::{ORDERS_MAX, PoolOrder, PoolOrderKey};
use store::{RetriesExhausted, retry_on_conflict};
use thiserror::Error;

use crate::scheduler::destination_queues::DestinationQueues;
use crate::scheduler::source_pools::{PoolOrders, PoolStatus, SourcePool};

/// Error of an order about pools.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The configuration has no pool of this name.
    #[error("pool `{0}` is not configured in [[delivery.pools]]")]
    NoPool(PoolName),
    /// [`ORDERS_MAX`] orders are stored.
    #[error("there are already {ORDERS_MAX} overrides of accounts and pools; remove some first")]
    TooMany,
    /// Other orders were saved concurrently at every try.
    #[error("another pool override was saved at the same time; try again")]
    Conflict(#[from] RetriesExhausted),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl DestinationQueues {
    /// Returns the state of all pools.
    pub fn pool_statuses(&self) -> Vec<PoolStatus> {
        let (now, orders) = (self.services.clock.now(), self.pools.orders());
        let ordered = |pool: &SourcePool| orders.warm_ups.get(pool.name()).copied();
        self.pools.all().map(|pool| pool.status(ordered(pool), now)).collect()
    }

    /// Returns the warm-up overrides of pools that are not configured any more.
    pub fn orphaned_warm_ups(&self) -> BTreeMap<PoolName, WarmUpOverride> {
        let orders = self.pools.orders();
        let is_orphaned = |(pool, _): &(&PoolName, &WarmUpOverride)| !self.pools.named.contains_key(*pool);
        orders.warm_ups.iter().filter(is_orphaned).map(|(pool, warm_up)| (pool.clone(), *warm_up)).collect()
    }

    /// Returns the accounts assigned to each pool by order.
    pub fn accounts_by_pool(&self) -> BTreeMap<PoolName, Vec<AccountId>> {
        let mut accounts = BTreeMap::<PoolName, Vec<AccountId>>::new();
        for (account, pool) in &self.pools.orders().accounts {
            accounts.entry(pool.clone()).or_default().push(*account);
        }
        accounts.values_mut().for_each(|accounts| accounts.sort());
        accounts
    }

    /// Assigns an account to a pool, or with `None` to the pool of its plan.
    ///
    /// # Errors
    /// `NoPool` for an unknown pool, `TooMany` when too many orders are stored, `Conflict` when other orders are saved
    /// concurrently; the store cannot be read or written.
    pub async fn assign_pool(&self, account: AccountId, pool: Option<PoolName>) -> Result<(), PoolError> {
        self.validate_pool(pool.as_ref())?;
        let order = pool.map(|pool| PoolOrder::Account(account, pool));
        self.save_pool_order(PoolOrderKey::Account(account), order).await
    }

    /// Overrides the warm-up of a pool, or with `None` restores the configured one.
    ///
    /// # Errors
    /// `NoPool` for an unknown pool, `TooMany` when too many orders are stored, `Conflict` when other orders are saved
    /// concurrently; the store cannot be read or written.
    pub async fn warm_up_pool(&self, pool: PoolName, warm_up: Option<WarmUpOverride>) -> Result<(), PoolError> {
        // Removing an override is allowed for a pool that is not configured any more.
        self.validate_pool(warm_up.as_ref().map(|_| &pool))?;
        let order = warm_up.map(|warm_up| PoolOrder::WarmUp(pool.clone(), warm_up));
        self.save_pool_order(PoolOrderKey::WarmUp(pool), order).await
    }

    fn validate_pool(&self, pool: Option<&PoolName>) -> Result<(), PoolError> {
        match pool {
            Some(name) if !self.pools.named.contains_key(name) => Err(PoolError::NoPool(name.clone())),
            _ => Ok(()),
        }
    }

    async fn save_pool_order(&self, key: PoolOrderKey, order: Option<PoolOrder>) -> Result<(), PoolError> {
        retry_on_conflict(|| async {
            let orders = PoolOrders::read(&self.services.store).await?;
            if order.is_some() && orders.accounts.len() + orders.warm_ups.len() >= ORDERS_MAX {
                return Err(PoolError::TooMany);
            }
            let mut batch = Batch::progress();
            match order.clone() {
                Some(order) => store::pool::put(&mut batch, &orders.version, order),
                None => store::pool::delete(&mut batch, &orders.version, &key),
            }
            Ok::<_, PoolError>(self.services.store.try_commit(batch).await?.then_some(()))
        })
        .await?;
        Ok(self.reload_pools().await?)
    }

    /// Applies orders saved since the last poll.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_pools(&self) -> Result<(), ReadError> {
        let _reload = self.pools.reload_lock.lock().await;
        if store::pool::current_version(&self.services.store).await? == self.pools.orders().version {
            return Ok(());
        }
        let orders = PoolOrders::read(&self.services.store).await?;
        let has_moved_accounts = orders.accounts != self.pools.orders().accounts;
        self.pools.replace(orders);
        self.rebalance_pace();
        let now = self.services.clock.now();
        for pool in self.pools.all() {
            let sites: Vec<_> = pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                site.wake();
                if has_moved_accounts {
                    // Waiting tasks may belong to another pool now: return them to disk, the loader assigns them again.
                    self.scheduler.defer_all(site.drain(), now);
                }
            }
        }
        // Queues on disk may have waited for a warm-up.
        self.scheduler.due_index.make_due_where(|_| true, now);
        Ok(())
    }
}
