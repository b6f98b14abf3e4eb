//! Source pools: the set of source addresses that an account's mail leaves from.
//!
//! ```text
//! account ─► pool assigned by the operator, else by its plan, else the default pool ─► warm-up limit reached?
//!                                                                             yes: the pool it spills over to
//! ```
//!
//! Providers rate source addresses by their mail, so each pool has ready queues, paces and a warm-up of its own. Pools
//! are configured at start. The operator's orders (pool of an account, start of a warm-up) may change at runtime and
//! apply to every node. Nodes have different addresses under the same pool names.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::civil::Date;
use mail::account::Plan;
use mail::address::DomainName;
use mail::classify;
use mail::id::AccountId;
use mail::metric;
use mail::pool::WarmUpOverride;
use mail::slug::PoolName;
use mail::task::{Task, TaskTlsRequirement};
use mail::warm_up::WarmUpCurve;
use quick_cache::sync::Cache;
use store::engine::{Batch, CommitError, ReadError, Store};
use store::pool::{ORDERS_MAX, PoolOrder, PoolOrderKey, PoolOrdersVersion};
use thiserror::Error;

use crate::attempt;
use crate::pacing::PaceLimits;
use crate::provider_limits::ProviderLimits;
use crate::ready_queue::ReadyQueue;
use crate::routing::MailRoute;
use crate::warm_up::{WarmUp, WarmUpBudget, WarmUpBudgets};
use crate::worker::Worker;

/// Accounts whose plan is cached.
const ACCOUNT_PLANS_MAX: usize = 100_000;
/// Commit tries when other orders are saved concurrently.
const COMMIT_TRIES_MAX: usize = 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceAddresses {
    pub pool: PoolName,
    /// Local addresses; if empty, the system chooses.
    pub addresses: Vec<IpAddr>,
    /// EHLO name; `None` is the server's name.
    pub helo: Option<DomainName>,
}

/// Configuration of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSettings {
    /// Addresses and EHLO name.
    pub source: SourceAddresses,
    /// Plans whose accounts use the pool.
    pub plans: Vec<Plan>,
    /// First day of the warm-up; `None` if the addresses are warm.
    pub warm_up: Option<Date>,
    pub curve: WarmUpCurve,
    /// Pool that takes mail above the warm-up limit; `None`: the mail waits.
    pub spill_over: Option<PoolName>,
}

/// Key of the limits that the ready queues of a provider share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ProviderKey {
    /// A name with a configured or ordered pace.
    Paced(DomainName),
    /// A large provider, by its known name, with default limits.
    Known(DomainName),
}

/// Ready queues of a pool by name, for each [`TaskTlsRequirement`]: a connection made for one requirement may not
/// satisfy another.
pub(crate) type ReadyQueues = [HashMap<String, Arc<ReadyQueue>>; 3];

/// A pool with its ready queues, shared limits and warm-up.
#[derive(Debug)]
pub(crate) struct SourcePool {
    pub(crate) source: Arc<SourceAddresses>,
    plans: Vec<Plan>,
    configured_start: Option<Date>,
    pub(crate) warm_up: Arc<WarmUp>,
    pub(crate) spill_over: Option<PoolName>,
    ready_queues: Mutex<ReadyQueues>,
    /// Limits shared by the ready queues of a provider.
    providers: Mutex<HashMap<ProviderKey, Arc<ProviderLimits>>>,
    budgets: Mutex<WarmUpBudgets>,
}

impl SourcePool {
    fn new(settings: PoolSettings) -> Self {
        let PoolSettings { source, plans, warm_up, curve, spill_over } = settings;
        // A provider may be reached by IPv4 or IPv6. The smaller family counts, so that no address exceeds the curve.
        let ipv4_count = source.addresses.iter().filter(|address| address.is_ipv4()).count();
        let families = [ipv4_count, source.addresses.len() - ipv4_count];
        let addresses = families.into_iter().filter(|count| *count > 0).min().unwrap_or(1) as u64;
        Self {
            source: Arc::new(source),
            plans,
            configured_start: warm_up,
            warm_up: Arc::new(WarmUp::new(warm_up, curve, addresses)),
            spill_over,
            ready_queues: Mutex::default(),
            providers: Mutex::default(),
            budgets: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &PoolName {
        &self.source.pool
    }

    pub(crate) fn ready_queues(&self) -> MutexGuard<'_, ReadyQueues> {
        self.ready_queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the pool's ready queue of a route, if it exists.
    fn ready_queue(&self, route: &MailRoute, tls: TaskTlsRequirement) -> Option<Arc<ReadyQueue>> {
        self.ready_queues()[tls as usize].get(&route.queue_name).cloned()
    }

    /// Wakes all ready queues that wait for their pace.
    pub(crate) fn wake(&self) {
        self.ready_queues().iter().flat_map(HashMap::values).for_each(|site| site.wake());
    }

    /// Returns the shared limits of a provider and updates them.
    pub(crate) fn provider_limits(
        &self,
        provider_pace: Option<(ProviderKey, PaceLimits)>,
    ) -> Option<Arc<ProviderLimits>> {
        let (name, limits) = provider_pace?;
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let provider = providers.entry(name).or_insert_with(|| Arc::new(ProviderLimits::new(limits)));
        provider.set_limits(limits);
        Some(Arc::clone(provider))
    }

    /// Returns the warm-up budget for the provider behind a route, if the pool is warming up.
    pub(crate) fn warm_up_budget(&self, route: &MailRoute, now: Timestamp) -> Option<Arc<WarmUpBudget>> {
        self.warm_up.per_day(now)?;
        let host = route.first_host()?;
        let name = classify::mailbox_provider(host)
            .map_or_else(|| metric::provider_domain(host.as_str()), DomainName::to_string);
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        Some(budgets.get_or_create(name, &self.warm_up, now))
    }

    /// Returns the warm-up budget that a ready queue has to respect: none if another pool takes the excess.
    pub(crate) fn queue_warm_up_budget(&self, route: &MailRoute, now: Timestamp) -> Option<Arc<WarmUpBudget>> {
        if self.spill_over.is_some() { None } else { self.warm_up_budget(route, now) }
    }

    fn status(&self, ordered: Option<WarmUpOverride>, now: Timestamp) -> PoolStatus {
        let budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let used_up = budgets.exhausted(now);
        drop(budgets);
        let warm_up = || {
            let (day, days) = self.warm_up.day(now)?;
            let since = self.warm_up.since()?;
            Some(WarmUpStatus { since, day, days, per_day: self.warm_up.per_day(now)?, used_up })
        };
        PoolStatus {
            source: Arc::clone(&self.source),
            plans: self.plans.clone(),
            spill_over: self.spill_over.clone(),
            warm_up: warm_up(),
            curve: self.warm_up.curve(),
            ordered,
            ready: self.ready_queues().iter().flat_map(HashMap::values).map(|site| site.ready_count()).sum(),
        }
    }
}

/// State of a pool, for the operator.
#[derive(Debug, Clone)]
pub struct PoolStatus {
    /// Addresses and EHLO name.
    pub source: Arc<SourceAddresses>,
    /// Plans whose accounts use the pool.
    pub plans: Vec<Plan>,
    /// Pool that takes mail above the warm-up limit.
    pub spill_over: Option<PoolName>,
    /// Progress of the warm-up; `None` if the pool is warm.
    pub warm_up: Option<WarmUpStatus>,
    /// Messages allowed to each provider on each day of a warm-up.
    pub curve: Vec<u64>,
    /// Operator's override of the warm-up; `None`: as configured.
    pub ordered: Option<WarmUpOverride>,
    /// Messages in memory that wait to be sent from the pool.
    pub ready: usize,
}

/// Progress of a warm-up.
#[derive(Debug, Clone)]
pub struct WarmUpStatus {
    /// First day.
    pub since: Date,
    /// Current day, from 1.
    pub day: usize,
    /// Length of the warm-up in days.
    pub days: usize,
    /// Messages allowed to each provider today.
    pub per_day: u64,
    /// Providers whose limit is reached, and until when.
    pub used_up: Vec<(String, Timestamp)>,
}

/// Operator's orders about pools, as of one stored version.
#[derive(Debug, Default)]
struct PoolOrders {
    version: PoolOrdersVersion,
    accounts: HashMap<AccountId, PoolName>,
    warm_ups: HashMap<PoolName, WarmUpOverride>,
}

impl PoolOrders {
    async fn read(store: &Store) -> Result<Self, ReadError> {
        // Read the version first: an order saved in between is read again at the next poll.
        let version = store::pool::current_version(store).await?;
        let mut orders = Self { version, ..Self::default() };
        for order in store::pool::list(store).await? {
            match order {
                PoolOrder::Account(account, pool) => _ = orders.accounts.insert(account, pool),
                PoolOrder::WarmUp(pool, warm_up) => _ = orders.warm_ups.insert(pool, warm_up),
            }
        }
        Ok(orders)
    }
}

#[derive(Debug)]
pub(crate) struct SourcePools {
    default: Arc<SourcePool>,
    named: BTreeMap<PoolName, Arc<SourcePool>>,
    by_plan: HashMap<Plan, Arc<SourcePool>>,
    orders: RwLock<Arc<PoolOrders>>,
    /// Serialises reloads, so that an older version never replaces a newer one.
    reload_lock: tokio::sync::Mutex<()>,
    /// Cached plans of accounts. They are read from tasks, because a queue name does not include the plan.
    account_plans: Cache<AccountId, Plan>,
}

impl SourcePools {
    /// Creates the configured pools and the default pool with the addresses `default`.
    pub(crate) fn new(default: Vec<IpAddr>, configured: Vec<PoolSettings>) -> Self {
        let source = SourceAddresses { addresses: default, ..SourceAddresses::default() };
        let default = Arc::new(SourcePool::new(PoolSettings { source, ..PoolSettings::default() }));
        let mut named = BTreeMap::from([(default.name().clone(), Arc::clone(&default))]);
        let mut by_plan = HashMap::new();
        for pool in configured.into_iter().map(SourcePool::new).map(Arc::new) {
            for plan in &pool.plans {
                by_plan.entry(*plan).or_insert_with(|| Arc::clone(&pool));
            }
            named.entry(pool.name().clone()).or_insert(pool);
        }
        Self {
            default,
            named,
            by_plan,
            orders: RwLock::default(),
            reload_lock: tokio::sync::Mutex::default(),
            account_plans: Cache::new(ACCOUNT_PLANS_MAX),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<SourcePool>> {
        self.named.values()
    }

    fn orders(&self) -> Arc<PoolOrders> {
        Arc::clone(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the pool of an account with a plan. An order for a pool that is not configured is ignored.
    fn for_account_and_plan(&self, account: AccountId, plan: Option<Plan>) -> &Arc<SourcePool> {
        let ordered = self.orders().accounts.get(&account).and_then(|name| self.named.get(name));
        ordered.or_else(|| self.by_plan.get(&plan?)).unwrap_or(&self.default)
    }

    /// Returns the pool of a task's account and caches the account's plan.
    fn for_task(&self, task: &Task) -> &Arc<SourcePool> {
        if let Some(plan) = task.plan.filter(|_| !self.by_plan.is_empty()) {
            self.account_plans.insert(task.account, plan);
        }
        self.for_account_and_plan(task.account, task.plan)
    }

    /// Returns the pool of an account, by its plan if that is cached.
    fn for_account(&self, account: AccountId) -> &Arc<SourcePool> {
        let plan = self.account_plans.get(&account);
        self.for_account_and_plan(account, plan)
    }

    /// True if the pool of an account can be determined without reading one of its tasks.
    pub(crate) fn knows_plan_of(&self, account: AccountId) -> bool {
        self.by_plan.is_empty()
            || self.orders().accounts.contains_key(&account)
            || self.account_plans.contains_key(&account)
    }

    /// Source addresses for smarthosts, which identify this server by credentials and not by address.
    pub(crate) fn smarthost_source(&self) -> &SourceAddresses {
        &self.default.source
    }

    /// Iterates over a pool and the pools that it spills over to.
    fn spill_over_chain<'p>(&'p self, first: &'p Arc<SourcePool>) -> impl Iterator<Item = &'p Arc<SourcePool>> {
        let next = |pool: &&'p Arc<SourcePool>| self.named.get(pool.spill_over.as_ref()?);
        std::iter::successors(Some(first), next).take(self.named.len())
    }

    /// Returns the first pool of the spill-over chain that may send, or the last one.
    fn first_allowed<'p>(
        &'p self,
        first: &'p Arc<SourcePool>,
        route: &MailRoute,
        now: Timestamp,
        is_allowed: impl Fn(&Arc<SourcePool>, &WarmUpBudget) -> bool,
    ) -> &'p Arc<SourcePool> {
        // Smarthosts do not rate the source address: use the default pool.
        if route.is_to_smarthost() {
            return &self.default;
        }
        let mut last = first;
        for pool in self.spill_over_chain(first) {
            last = pool;
            let is_last = pool.spill_over.is_none();
            if is_last || pool.warm_up_budget(route, now).is_none_or(|budget| is_allowed(pool, &budget)) {
                break;
            }
        }
        last
    }

    /// Chooses the pool for a task and takes its warm-up credit, unless `waits` shows that it waits in that pool for
    /// something else.
    pub(crate) fn choose_for_task(
        &self,
        task: &Task,
        route: &MailRoute,
        now: Timestamp,
        waits: impl Fn(&Arc<SourcePool>) -> bool,
    ) -> &Arc<SourcePool> {
        let first = self.for_task(task);
        let found = self.first_allowed(first, route, now, |pool, budget| waits(pool) || budget.try_take(now).is_ok());
        if found.name() != first.name() && !route.is_to_smarthost() {
            let pool = first.name().to_string();
            metrics::counter!("postrider_spilled_over_total", "pool" => pool).increment(1);
        }
        found
    }

    /// Returns the pool that an account's mail would use now, without taking warm-up credit.
    pub(crate) fn preview_for_account(
        &self,
        account: AccountId,
        route: &MailRoute,
        now: Timestamp,
    ) -> &Arc<SourcePool> {
        self.first_allowed(self.for_account(account), route, now, |_, budget| budget.exhausted_until(now).is_none())
    }

    /// Iterates over the pools in which a task may wait.
    pub(crate) fn candidates_for<'p>(
        &'p self,
        task: &Task,
        route: &MailRoute,
    ) -> impl Iterator<Item = &'p Arc<SourcePool>> {
        let first = if route.is_to_smarthost() { &self.default } else { self.for_task(task) };
        self.spill_over_chain(first)
    }

    fn replace(&self, orders: PoolOrders) {
        for pool in self.all() {
            pool.warm_up.set_start(match orders.warm_ups.get(pool.name()) {
                Some(WarmUpOverride::Since(date)) => Some(*date),
                Some(WarmUpOverride::Over) => None,
                None => pool.configured_start,
            });
        }
        *self.orders.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(orders);
    }
}

/// Error of an order about pools.
#[derive(Debug, Error)]
pub enum PoolError {
    /// The configuration has no pool of this name.
    #[error("pool `{0}` is not configured in [[delivery.pools]]")]
    NoPool(PoolName),
    /// [`ORDERS_MAX`] orders are stored.
    #[error("there are {ORDERS_MAX} orders about accounts and pools already; remove some first")]
    TooMany,
    /// Other orders were saved concurrently at every try.
    #[error("another pool order was saved at the same time; try again")]
    Conflict,
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// Returns the state of all pools.
    #[must_use]
    pub fn pool_statuses(&self) -> Vec<PoolStatus> {
        let (now, orders) = (self.clock.now(), self.pools.orders());
        let ordered = |pool: &SourcePool| orders.warm_ups.get(pool.name()).copied();
        self.pools.all().map(|pool| pool.status(ordered(pool), now)).collect()
    }

    /// Returns the warm-up overrides of pools that are not configured any more.
    #[must_use]
    pub fn orphaned_warm_ups(&self) -> BTreeMap<PoolName, WarmUpOverride> {
        let orders = self.pools.orders();
        let is_orphaned = |(pool, _): &(&PoolName, &WarmUpOverride)| !self.pools.named.contains_key(*pool);
        orders.warm_ups.iter().filter(is_orphaned).map(|(pool, warm_up)| (pool.clone(), *warm_up)).collect()
    }

    /// Returns the accounts assigned to each pool by order.
    #[must_use]
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
        for _ in 0..COMMIT_TRIES_MAX {
            let orders = PoolOrders::read(&self.store).await?;
            if order.is_some() && orders.accounts.len() + orders.warm_ups.len() >= ORDERS_MAX {
                return Err(PoolError::TooMany);
            }
            let mut batch = Batch::progress();
            match order.clone() {
                Some(order) => store::pool::put(&mut batch, &orders.version, order),
                None => store::pool::delete(&mut batch, &orders.version, &key),
            }
            match self.store.commit(batch).await {
                Ok(()) => return Ok(self.reload_pools().await?),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PoolError::Conflict)
    }

    /// Applies orders saved since the last poll.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_pools(&self) -> Result<(), ReadError> {
        let _reload = self.pools.reload_lock.lock().await;
        if store::pool::current_version(&self.store).await? == self.pools.orders().version {
            return Ok(());
        }
        let orders = PoolOrders::read(&self.store).await?;
        let has_moved_accounts = orders.accounts != self.pools.orders().accounts;
        self.pools.replace(orders);
        self.rebalance_pace();
        let now = self.clock.now();
        for pool in self.pools.all() {
            let sites: Vec<_> = pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                site.wake();
                if has_moved_accounts {
                    // Waiting tasks may belong to another pool now: return them to disk, the loader assigns them again.
                    attempt::defer_to_disk(self, site.drain(), now);
                }
            }
        }
        // Queues on disk may have waited for a warm-up.
        self.due_index.make_due_where(|_| true, now);
        Ok(())
    }

    /// Returns the existing ready queues in which a task may wait.
    pub(crate) fn ready_queues_of(&self, task: &Task, route: &MailRoute) -> impl Iterator<Item = Arc<ReadyQueue>> {
        let tls = task.tls_requirement();
        self.pools.candidates_for(task, route).filter_map(move |pool| pool.ready_queue(route, tls))
    }

    /// Returns the ready queue that holds a task, or else the existing one that it would be added to.
    pub(crate) fn ready_queue_of(&self, task: &Task, route: &MailRoute) -> Option<Arc<ReadyQueue>> {
        let holds = self.ready_queues_of(task, route).find(|site| site.position(task).is_some());
        holds.or_else(|| {
            let pool = self.pools.preview_for_account(task.account, route, self.clock.now());
            pool.ready_queue(route, task.tls_requirement())
        })
    }
}
