//! Source pools (IP pools): the set of source addresses that an account's mail leaves from.
//!
//! ```text
//! account ─► pool assigned by the operator, else by its plan, else the default pool ─► warm-up limit reached?
//!                                                                             yes: the pool it spills over to
//! ```
//!
//! Providers rate source addresses by their mail, so each pool has ready queues, paces and a warm-up of its own. Pools
//! are configured at start. The operator's orders (pool of an account, start of a warm-up) may change at runtime and
//! apply to every node. Nodes have different addresses under the same pool names.

use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use message::address::DomainName;
use message::classify;
use model::account::Plan;
use model::id::AccountId;
use model::metric;
use model::pool::WarmUpOverride;
use model::slug::PoolName;
use model::task::{Task, TaskTlsRequirement};
use model::warm_up::WarmUpCurve;
use quick_cache::sync::Cache;
use store::engine::{ReadError, Store};
use store::pool::{PoolOrder, PoolOrdersVersion};

use crate::routing::MailRoute;
use crate::scheduler::pacing::PaceLimits;
use crate::scheduler::provider_limits::ProviderLimits;
use crate::scheduler::ready_queue::ReadyQueue;
use crate::scheduler::warm_up::{WarmUp, WarmUpBudget, WarmUpBudgets};

/// Accounts whose plan is cached.
const ACCOUNT_PLANS_MAX: usize = 100_000;

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
        self.ready_queues.lock()
    }

    /// Returns the pool's ready queue of a route, if it exists.
    pub(crate) fn ready_queue(&self, route: &MailRoute, tls: TaskTlsRequirement) -> Option<Arc<ReadyQueue>> {
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
        let mut providers = self.providers.lock();
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
        let mut budgets = self.budgets.lock();
        Some(budgets.get_or_create(name, &self.warm_up, now))
    }

    /// Returns the warm-up budget that a ready queue has to respect: none if another pool takes the excess.
    pub(crate) fn queue_warm_up_budget(&self, route: &MailRoute, now: Timestamp) -> Option<Arc<WarmUpBudget>> {
        if self.spill_over.is_some() { None } else { self.warm_up_budget(route, now) }
    }

    pub(crate) fn status(&self, ordered: Option<WarmUpOverride>, now: Timestamp) -> PoolStatus {
        let budgets = self.budgets.lock();
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
pub(crate) struct PoolOrders {
    pub(crate) version: PoolOrdersVersion,
    pub(crate) accounts: HashMap<AccountId, PoolName>,
    pub(crate) warm_ups: HashMap<PoolName, WarmUpOverride>,
}

impl PoolOrders {
    pub(crate) async fn read(store: &Store) -> Result<Self, ReadError> {
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
    pub(crate) named: BTreeMap<PoolName, Arc<SourcePool>>,
    by_plan: HashMap<Plan, Arc<SourcePool>>,
    orders: RwLock<Arc<PoolOrders>>,
    /// Serialises reloads, so that an older version never replaces a newer one.
    pub(crate) reload_lock: tokio::sync::Mutex<()>,
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

    pub(crate) fn orders(&self) -> Arc<PoolOrders> {
        Arc::clone(&self.orders.read())
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

    pub(crate) fn replace(&self, orders: PoolOrders) {
        for pool in self.all() {
            pool.warm_up.set_start(match orders.warm_ups.get(pool.name()) {
                Some(WarmUpOverride::Since(date)) => Some(*date),
                Some(WarmUpOverride::Over) => None,
                None => pool.configured_start,
            });
        }
        *self.orders.write() = Arc::new(orders);
    }
}
