//! Pools of source addresses: from which of them an account's mail leaves.
//!
//! ```text
//! account ─► ordered for it, else for its plan, else the default pool ─► warming up, and used up for this provider?
//!                                                                        the one that it spills over to
//! ```
//!
//! Providers judge addresses by what comes from them: so each pool is served at sites, paces and a warm-up of its own.
//! What is configured stays for as long as we run; which account leaves from where, and since when a pool is warmed up,
//! may be ordered meanwhile, and holds on every node. Nodes have addresses of their own under the names of pools.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use jiff::Timestamp;
use jiff::civil::Date;
use mail::account::Plan;
use mail::address::DomainName;
use mail::classify;
use mail::given_name::PoolName;
use mail::id::AccountId;
use mail::metric;
use mail::pool::WarmUpOverride;
use mail::task::{Task, TaskTlsRequirement};
use mail::warm_up::WarmUpCurve;
use store::engine::{Batch, CommitError, ReadError, Store};
use store::pool::{ORDERS_MAX, PoolOrder, PoolOrderKey, PoolOrdersVersion};
use thiserror::Error;

use crate::attempt;
use crate::pace::PaceLimits;
use crate::plan::MailRoute;
use crate::provider::ProviderLimits;
use crate::site::ReadyQueue;
use crate::warm_up::{WarmUp, WarmUpBudget};
use crate::worker::Worker;

/// Providers whose warm-up is remembered.
const BUDGETS_MAX: usize = 20_000;
/// Accounts whose plan is remembered.
const ACCOUNT_PLANS_MAX: usize = 100_000;
/// Commits tried, when something else is ordered meanwhile.
const COMMIT_TRIES_MAX: usize = 20;

/// Where mail leaves from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceAddresses {
    /// The pool.
    pub pool: PoolName,
    /// Local addresses; none lets the system choose.
    pub addresses: Vec<IpAddr>,
    /// What we say in EHLO; none is our name.
    pub helo: Option<DomainName>,
}

/// A pool, as it is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSettings {
    /// Where its mail leaves from.
    pub source: SourceAddresses,
    /// The plans whose accounts' mail leaves from it.
    pub plans: Vec<Plan>,
    /// The first day of its warm-up; none where its addresses are known to providers.
    pub warm_up: Option<Date>,
    /// How it is warmed up.
    pub curve: WarmUpCurve,
    /// The pool that takes what is too much for the warm-up; none: it waits.
    pub spill_over: Option<PoolName>,
}

/// By what the sites of a provider are known: the name that a pace is configured or ordered for; or the name of a large
/// provider, whose other names no such pace was meant for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ProviderKey {
    /// Paced as the operator says.
    Paced(DomainName),
    /// As is usual.
    Known(DomainName),
}

/// Sites of a pool, by name, for each of what may be asked of TLS: a connection that would do for one may not for
/// another.
pub(crate) type ReadyQueues = [HashMap<String, Arc<ReadyQueue>>; 3];

/// A pool, and how far it has come.
#[derive(Debug)]
pub(crate) struct SourcePool {
    pub(crate) source: Arc<SourceAddresses>,
    plans: Vec<Plan>,
    configured_start: Option<Date>,
    pub(crate) warm_up: Arc<WarmUp>,
    pub(crate) spill_over: Option<PoolName>,
    ready_queues: Mutex<ReadyQueues>,
    /// What the sites of a provider have in common.
    providers: Mutex<HashMap<ProviderKey, Arc<ProviderLimits>>>,
    /// What may go while it is warmed up, by provider.
    budgets: Mutex<HashMap<String, Arc<WarmUpBudget>>>,
}

impl SourcePool {
    fn new(settings: PoolSettings) -> Self {
        let PoolSettings { source, plans, warm_up, curve, spill_over } = settings;
        // A provider may be reached by either family: none of the addresses is to send more than the curve has.
        let four = source.addresses.iter().filter(|address| address.is_ipv4()).count();
        let families = [four, source.addresses.len() - four];
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

    /// The site of a route, as it is served from here; none where none was made.
    fn ready_queue(&self, route: &MailRoute, tls: TaskTlsRequirement) -> Option<Arc<ReadyQueue>> {
        self.ready_queues()[tls as usize].get(&route.queue_name).cloned()
    }

    /// Whoever waits at a site for its pace looks again.
    pub(crate) fn wake(&self) {
        self.ready_queues().iter().flat_map(HashMap::values).for_each(|site| site.wake());
    }

    /// What the sites under a name have in common, which may be so much together.
    pub(crate) fn provider_limits(&self, of: Option<(ProviderKey, PaceLimits)>) -> Option<Arc<ProviderLimits>> {
        let (name, limits) = of?;
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let provider = providers.entry(name).or_insert_with(|| Arc::new(ProviderLimits::new(limits)));
        provider.set_limits(limits);
        Some(Arc::clone(provider))
    }

    /// What may go to the provider behind a route, where it is warmed up for it.
    pub(crate) fn warm_up_budget(&self, route: &MailRoute, now: Timestamp) -> Option<Arc<WarmUpBudget>> {
        self.warm_up.per_day(now)?;
        let host = route.first_host()?;
        let name = classify::mailbox_provider(host)
            .map_or_else(|| metric::provider_domain(host.as_str()), DomainName::to_string);
        let mut budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(budget) = budgets.get(&name) {
            return Some(Arc::clone(budget));
        }
        if budgets.len() >= BUDGETS_MAX {
            // Of whom nothing was sent to for long, little is forgotten.
            budgets.retain(|_, budget| !budget.is_full(now));
            if budgets.len() >= BUDGETS_MAX {
                budgets.clear();
            }
        }
        let budget = Arc::new(WarmUpBudget::new(Arc::clone(&self.warm_up)));
        budgets.insert(name, Arc::clone(&budget));
        Some(budget)
    }

    /// The same for a site, which keeps to it where nobody else takes what is too much.
    pub(crate) fn queue_warm_up_budget(&self, route: &MailRoute, now: Timestamp) -> Option<Arc<WarmUpBudget>> {
        if self.spill_over.is_some() { None } else { self.warm_up_budget(route, now) }
    }

    fn status(&self, ordered: Option<WarmUpOverride>, now: Timestamp) -> PoolStatus {
        let budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used_up: Vec<(String, Timestamp)> =
            budgets.iter().filter_map(|(name, budget)| Some((name.clone(), budget.exhausted_until(now)?.0))).collect();
        drop(budgets);
        used_up.sort();
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
            ordered,
            ready: self.ready_queues().iter().flat_map(HashMap::values).map(|site| site.ready_count()).sum(),
        }
    }
}

/// How a pool stands, for the operator.
#[derive(Debug, Clone)]
pub struct PoolStatus {
    /// Where its mail leaves from.
    pub source: Arc<SourceAddresses>,
    /// The plans whose accounts' mail leaves from it.
    pub plans: Vec<Plan>,
    /// The pool that takes what is too much for the warm-up.
    pub spill_over: Option<PoolName>,
    /// How far its warm-up is; none when it is warm.
    pub warm_up: Option<WarmUpStatus>,
    /// What was ordered about its warm-up; none: it is as configured.
    pub ordered: Option<WarmUpOverride>,
    /// Messages that wait in memory to leave from it.
    pub ready: usize,
}

/// How far a warm-up is.
#[derive(Debug, Clone)]
pub struct WarmUpStatus {
    /// Its first day.
    pub since: Date,
    /// The day of it, from 1 on.
    pub day: usize,
    /// Of so many.
    pub days: usize,
    /// Messages to each provider today.
    pub per_day: u64,
    /// The providers to which nothing more may go, and until when.
    pub used_up: Vec<(String, Timestamp)>,
}

/// What is ordered, of one version.
#[derive(Debug, Default)]
struct PoolOrders {
    version: PoolOrdersVersion,
    accounts: HashMap<AccountId, PoolName>,
    warm_ups: HashMap<PoolName, WarmUpOverride>,
}

impl PoolOrders {
    async fn read(store: &Store) -> Result<Self, ReadError> {
        // The version first: what is ordered in between is read again at the next look.
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

/// All pools.
#[derive(Debug)]
pub(crate) struct SourcePools {
    default: Arc<SourcePool>,
    named: BTreeMap<PoolName, Arc<SourcePool>>,
    by_plan: HashMap<Plan, Arc<SourcePool>>,
    orders: RwLock<Arc<PoolOrders>>,
    /// One at a time looks: the older of two must not be taken on last.
    reload_lock: tokio::sync::Mutex<()>,
    /// What accounts pay for, as their mail says: a queue does not.
    account_plans: Mutex<HashMap<AccountId, Plan>>,
}

impl SourcePools {
    /// These, and the one of everybody else, whose addresses are `default`.
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
            account_plans: Mutex::default(),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<SourcePool>> {
        self.named.values()
    }

    fn orders(&self) -> Arc<PoolOrders> {
        Arc::clone(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The pool of an account of a plan. A pool that is ordered and not configured (any more) is none.
    fn for_account_and_plan(&self, account: AccountId, plan: Option<Plan>) -> &Arc<SourcePool> {
        let ordered = self.orders().accounts.get(&account).and_then(|name| self.named.get(name));
        ordered.or_else(|| self.by_plan.get(&plan?)).unwrap_or(&self.default)
    }

    /// The pool of a task's account.
    fn for_task(&self, task: &Task) -> &Arc<SourcePool> {
        if let Some(plan) = task.plan.filter(|_| !self.by_plan.is_empty()) {
            let mut plans = self.account_plans.lock().unwrap_or_else(PoisonError::into_inner);
            if plans.len() >= ACCOUNT_PLANS_MAX {
                plans.clear();
            }
            plans.insert(task.account, plan);
        }
        self.for_account_and_plan(task.account, task.plan)
    }

    /// The pool of an account, as far as its plan is known.
    fn for_account(&self, account: AccountId) -> &Arc<SourcePool> {
        let plan = self.account_plans.lock().unwrap_or_else(PoisonError::into_inner).get(&account).copied();
        self.for_account_and_plan(account, plan)
    }

    /// Whether it is known which pool an account's mail leaves from: its mail says what it pays for, once it is read.
    pub(crate) fn knows_plan_of(&self, account: AccountId) -> bool {
        self.by_plan.is_empty()
            || self.orders().accounts.contains_key(&account)
            || self.account_plans.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&account)
    }

    /// Where mail to smarthosts leaves from, which know us by another name than our address.
    pub(crate) fn smarthost_source(&self) -> &SourceAddresses {
        &self.default.source
    }

    /// A pool, and those that its mail spills over to.
    fn spill_over_chain<'p>(&'p self, first: &'p Arc<SourcePool>) -> impl Iterator<Item = &'p Arc<SourcePool>> {
        let next = |pool: &&'p Arc<SourcePool>| self.named.get(pool.spill_over.as_ref()?);
        std::iter::successors(Some(first), next).take(self.named.len())
    }

    /// The first of a chain that may send there.
    fn first_allowed<'p>(
        &'p self,
        first: &'p Arc<SourcePool>,
        route: &MailRoute,
        now: Timestamp,
        may: impl Fn(&Arc<SourcePool>, &WarmUpBudget) -> bool,
    ) -> &'p Arc<SourcePool> {
        // A smarthost knows us by another name than our address.
        if route.is_to_smarthost() {
            return &self.default;
        }
        let mut last = first;
        for pool in self.spill_over_chain(first) {
            last = pool;
            let ends = pool.spill_over.is_none();
            if ends || pool.warm_up_budget(route, now).is_none_or(|budget| may(pool, &budget)) {
                break;
            }
        }
        last
    }

    /// The pool that a task leaves from now. What it takes of a warm-up is taken, but where it waits for something else.
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
            let whose = first.name().to_string();
            metrics::counter!("postrider_spilled_over_total", "pool" => whose).increment(1);
        }
        found
    }

    /// The pool that an account's mail would leave from now.
    pub(crate) fn preview_for_account(
        &self,
        account: AccountId,
        route: &MailRoute,
        now: Timestamp,
    ) -> &Arc<SourcePool> {
        self.first_allowed(self.for_account(account), route, now, |_, budget| budget.exhausted_until(now).is_none())
    }

    /// The pools that a task may wait in.
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

/// Why something was not ordered.
#[derive(Debug, Error)]
pub enum PoolError {
    /// There is no pool of this name.
    #[error("there is no pool `{0}`: the configuration names them in [[delivery.pools]]")]
    NoPool(PoolName),
    /// Too much is ordered.
    #[error("something is ordered for {ORDERS_MAX} accounts and pools already; take some of it back first")]
    TooMany,
    /// Others order without end.
    #[error("something else was ordered at the same time; try again")]
    Conflict,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl Worker {
    /// How the pools stand.
    #[must_use]
    pub fn pool_statuses(&self) -> Vec<PoolStatus> {
        let (now, orders) = (self.clock.now(), self.pools.orders());
        let ordered = |pool: &SourcePool| orders.warm_ups.get(pool.name()).copied();
        self.pools.all().map(|pool| pool.status(ordered(pool), now)).collect()
    }

    /// Warm-ups that were ordered of pools that are configured no more.
    #[must_use]
    pub fn orphaned_warm_ups(&self) -> BTreeMap<PoolName, WarmUpOverride> {
        let orders = self.pools.orders();
        let is_gone = |(pool, _): &(&PoolName, &WarmUpOverride)| !self.pools.named.contains_key(*pool);
        orders.warm_ups.iter().filter(is_gone).map(|(pool, warm_up)| (pool.clone(), *warm_up)).collect()
    }

    /// The accounts whose mail leaves from a pool by order.
    #[must_use]
    pub fn accounts_by_pool(&self) -> BTreeMap<PoolName, Vec<AccountId>> {
        let mut accounts = BTreeMap::<PoolName, Vec<AccountId>>::new();
        for (account, pool) in &self.pools.orders().accounts {
            accounts.entry(pool.clone()).or_default().push(*account);
        }
        accounts.values_mut().for_each(|accounts| accounts.sort());
        accounts
    }

    /// Has an account's mail leave from a pool from now on, or from that of its plan.
    ///
    /// # Errors
    /// [`PoolError`].
    pub async fn assign_pool(&self, account: AccountId, pool: Option<PoolName>) -> Result<(), PoolError> {
        self.validate_pool(pool.as_ref())?;
        let order = pool.map(|pool| PoolOrder::Account(account, pool));
        self.save_pool_order(PoolOrderKey::Account(account), order).await
    }

    /// Has a pool be warmed up from another time on, or as configured.
    ///
    /// # Errors
    /// [`PoolError`].
    pub async fn warm_up_pool(&self, pool: PoolName, warm_up: Option<WarmUpOverride>) -> Result<(), PoolError> {
        // What is taken back may be of a pool that is configured no more.
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

    async fn save_pool_order(&self, about: PoolOrderKey, order: Option<PoolOrder>) -> Result<(), PoolError> {
        for _ in 0..COMMIT_TRIES_MAX {
            let orders = PoolOrders::read(&self.store).await?;
            if order.is_some() && orders.accounts.len() + orders.warm_ups.len() >= ORDERS_MAX {
                return Err(PoolError::TooMany);
            }
            let mut batch = Batch::progress();
            match order.clone() {
                Some(order) => store::pool::put(&mut batch, &orders.version, order),
                None => store::pool::delete(&mut batch, &orders.version, &about),
            }
            match self.store.commit(batch).await {
                Ok(()) => return Ok(self.reload_pools().await?),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PoolError::Conflict)
    }

    /// Takes on what was ordered since the last look.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn reload_pools(&self) -> Result<(), ReadError> {
        let _looking = self.pools.reload_lock.lock().await;
        if store::pool::current_version(&self.store).await? == self.pools.orders().version {
            return Ok(());
        }
        let orders = PoolOrders::read(&self.store).await?;
        let is_moved = orders.accounts != self.pools.orders().accounts;
        self.pools.replace(orders);
        self.rebalance_pace();
        let now = self.clock.now();
        for pool in self.pools.all() {
            let sites: Vec<_> = pool.ready_queues().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                site.wake();
                if is_moved {
                    // What waits to leave from elsewhere comes from disk again.
                    attempt::defer_to_disk(self, site.drain(), now);
                }
            }
        }
        // What waits on disk for a warm-up, too.
        self.due_index.make_due_where(|_| true, now);
        Ok(())
    }

    /// The sites that a task may wait at, as far as there are any yet.
    pub(crate) fn ready_queues_of(&self, task: &Task, route: &MailRoute) -> impl Iterator<Item = Arc<ReadyQueue>> {
        let tls = task.tls_requirement();
        self.pools.candidates_for(task, route).filter_map(move |pool| pool.ready_queue(route, tls))
    }

    /// The site that a task waits at; where it is at none, the one that it would come to, if there is one yet.
    pub(crate) fn ready_queue_of(&self, task: &Task, route: &MailRoute) -> Option<Arc<ReadyQueue>> {
        let holds = self.ready_queues_of(task, route).find(|site| site.position(task).is_some());
        holds.or_else(|| {
            let pool = self.pools.preview_for_account(task.account, route, self.clock.now());
            pool.ready_queue(route, task.tls_requirement())
        })
    }
}
