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
use mail::address::Name;
use mail::classify;
use mail::given_name::PoolName;
use mail::id::AccountId;
use mail::metric;
use mail::pool::OrderedWarmUp;
use mail::task::{Task, TlsDemand};
use mail::warm_up::Curve;
use store::engine::{Batch, CommitError, ReadError, Store};
use store::pool::{About, ORDERS_MAX, PoolOrder, Version};
use thiserror::Error;

use crate::attempt;
use crate::pace::PaceLimits;
use crate::plan::Route;
use crate::provider::Provider;
use crate::site::Site;
use crate::warm_up::{Budget, WarmUp};
use crate::worker::Worker;

/// Providers whose warm-up is remembered.
const BUDGETS_MAX: usize = 20_000;
/// Accounts whose plan is remembered.
const PLANS_MAX: usize = 100_000;
/// Commits tried, when something else is ordered meanwhile.
const TRIES_MAX: usize = 20;

/// Where mail leaves from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// The pool.
    pub pool: PoolName,
    /// Local addresses; none lets the system choose.
    pub addresses: Vec<IpAddr>,
    /// What we say in EHLO; none is our name.
    pub helo: Option<Name>,
}

/// A pool, as it is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PoolSettings {
    /// Where its mail leaves from.
    pub source: Source,
    /// The plans whose accounts' mail leaves from it.
    pub plans: Vec<Plan>,
    /// The first day of its warm-up; none where its addresses are known to providers.
    pub warm_up: Option<Date>,
    /// How it is warmed up.
    pub curve: Curve,
    /// The pool that takes what is too much for the warm-up; none: it waits.
    pub spill_over: Option<PoolName>,
}

/// By what the sites of a provider are known: the name that a pace is configured or ordered for; or the name of a large
/// provider, whose other names no such pace was meant for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum ProviderKey {
    /// Paced as the operator says.
    Paced(Name),
    /// As is usual.
    Known(Name),
}

/// Sites of a pool, by name, for each of what may be asked of TLS: a connection that would do for one may not for
/// another.
pub(crate) type Sites = [HashMap<String, Arc<Site>>; 3];

/// A pool, and how far it has come.
#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) source: Arc<Source>,
    plans: Vec<Plan>,
    configured: Option<Date>,
    pub(crate) warm_up: Arc<WarmUp>,
    pub(crate) spill_over: Option<PoolName>,
    sites: Mutex<Sites>,
    /// What the sites of a provider have in common.
    providers: Mutex<HashMap<ProviderKey, Arc<Provider>>>,
    /// What may go while it is warmed up, by provider.
    budgets: Mutex<HashMap<String, Arc<Budget>>>,
}

impl Pool {
    fn new(settings: PoolSettings) -> Self {
        let PoolSettings { source, plans, warm_up, curve, spill_over } = settings;
        // A provider may be reached by either family: none of the addresses is to send more than the curve has.
        let four = source.addresses.iter().filter(|address| address.is_ipv4()).count();
        let families = [four, source.addresses.len() - four];
        let addresses = families.into_iter().filter(|count| *count > 0).min().unwrap_or(1) as u64;
        Self {
            source: Arc::new(source),
            plans,
            configured: warm_up,
            warm_up: Arc::new(WarmUp::new(warm_up, curve, addresses)),
            spill_over,
            sites: Mutex::default(),
            providers: Mutex::default(),
            budgets: Mutex::default(),
        }
    }

    pub(crate) fn name(&self) -> &PoolName {
        &self.source.pool
    }

    pub(crate) fn sites(&self) -> MutexGuard<'_, Sites> {
        self.sites.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The site of a route, as it is served from here; none where none was made.
    fn known_site(&self, route: &Route, tls: TlsDemand) -> Option<Arc<Site>> {
        self.sites()[tls as usize].get(&route.site).cloned()
    }

    /// Whoever waits at a site for its pace looks again.
    pub(crate) fn wake(&self) {
        self.sites().iter().flat_map(HashMap::values).for_each(|site| site.wake());
    }

    /// What the sites under a name have in common, which may be so much together.
    pub(crate) fn provider(&self, of: Option<(ProviderKey, PaceLimits)>) -> Option<Arc<Provider>> {
        let (name, limits) = of?;
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let provider = providers.entry(name).or_insert_with(|| Arc::new(Provider::new(limits)));
        provider.limit(limits);
        Some(Arc::clone(provider))
    }

    /// What may go to the provider behind a route, where it is warmed up for it.
    pub(crate) fn budget(&self, route: &Route, now: Timestamp) -> Option<Arc<Budget>> {
        self.warm_up.per_day(now)?;
        let host = route.first_host()?;
        let name = classify::provider(host).map_or_else(|| metric::provider(host.as_str()), Name::to_string);
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
        let budget = Arc::new(Budget::new(Arc::clone(&self.warm_up)));
        budgets.insert(name, Arc::clone(&budget));
        Some(budget)
    }

    /// The same for a site, which keeps to it where nobody else takes what is too much.
    pub(crate) fn budget_of_site(&self, route: &Route, now: Timestamp) -> Option<Arc<Budget>> {
        if self.spill_over.is_some() { None } else { self.budget(route, now) }
    }

    fn standing(&self, ordered: Option<OrderedWarmUp>, now: Timestamp) -> PoolStanding {
        let budgets = self.budgets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used_up: Vec<(String, Timestamp)> = budgets
            .iter()
            .filter_map(|(name, budget)| Some((name.clone(), budget.used_up(now)?.0)))
            .collect();
        drop(budgets);
        used_up.sort();
        let warm_up = || {
            let (day, days) = self.warm_up.day(now)?;
            let since = self.warm_up.since()?;
            Some(WarmUpStanding { since, day, days, per_day: self.warm_up.per_day(now)?, used_up })
        };
        PoolStanding {
            source: Arc::clone(&self.source),
            plans: self.plans.clone(),
            spill_over: self.spill_over.clone(),
            warm_up: warm_up(),
            ordered,
            ready: self.sites().iter().flat_map(HashMap::values).map(|site| site.ready()).sum(),
        }
    }
}

/// How a pool stands, for the operator.
#[derive(Debug, Clone)]
pub struct PoolStanding {
    /// Where its mail leaves from.
    pub source: Arc<Source>,
    /// The plans whose accounts' mail leaves from it.
    pub plans: Vec<Plan>,
    /// The pool that takes what is too much for the warm-up.
    pub spill_over: Option<PoolName>,
    /// How far its warm-up is; none when it is warm.
    pub warm_up: Option<WarmUpStanding>,
    /// What was ordered about its warm-up; none: it is as configured.
    pub ordered: Option<OrderedWarmUp>,
    /// Messages that wait in memory to leave from it.
    pub ready: usize,
}

/// How far a warm-up is.
#[derive(Debug, Clone)]
pub struct WarmUpStanding {
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
struct Orders {
    version: Version,
    accounts: HashMap<AccountId, PoolName>,
    warm_ups: HashMap<PoolName, OrderedWarmUp>,
}

impl Orders {
    async fn read(store: &Store) -> Result<Self, ReadError> {
        // The version first: what is ordered in between is read again at the next look.
        let version = store::pool::version(store).await?;
        let mut orders = Self { version, ..Self::default() };
        for order in store::pool::all(store).await? {
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
pub(crate) struct Pools {
    default: Arc<Pool>,
    named: BTreeMap<PoolName, Arc<Pool>>,
    of_plan: HashMap<Plan, Arc<Pool>>,
    orders: RwLock<Arc<Orders>>,
    /// One at a time looks: the older of two must not be taken on last.
    looking: tokio::sync::Mutex<()>,
    /// What accounts pay for, as their mail says: a queue does not.
    plans: Mutex<HashMap<AccountId, Plan>>,
}

impl Pools {
    /// These, and the one of everybody else, whose addresses are `default`.
    pub(crate) fn new(default: Vec<IpAddr>, configured: Vec<PoolSettings>) -> Self {
        let source = Source { addresses: default, ..Source::default() };
        let default = Arc::new(Pool::new(PoolSettings { source, ..PoolSettings::default() }));
        let mut named = BTreeMap::from([(default.name().clone(), Arc::clone(&default))]);
        let mut of_plan = HashMap::new();
        for pool in configured.into_iter().map(Pool::new).map(Arc::new) {
            for plan in &pool.plans {
                of_plan.entry(*plan).or_insert_with(|| Arc::clone(&pool));
            }
            named.entry(pool.name().clone()).or_insert(pool);
        }
        Self {
            default,
            named,
            of_plan,
            orders: RwLock::default(),
            looking: tokio::sync::Mutex::default(),
            plans: Mutex::default(),
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.named.values()
    }

    fn orders(&self) -> Arc<Orders> {
        Arc::clone(&self.orders.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The pool of an account of a plan. A pool that is ordered and not configured (any more) is none.
    fn of(&self, account: AccountId, plan: Option<Plan>) -> &Arc<Pool> {
        let ordered = self.orders().accounts.get(&account).and_then(|name| self.named.get(name));
        ordered.or_else(|| self.of_plan.get(&plan?)).unwrap_or(&self.default)
    }

    /// The pool of a task's account.
    fn of_task(&self, task: &Task) -> &Arc<Pool> {
        if let Some(plan) = task.plan.filter(|_| !self.of_plan.is_empty()) {
            let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
            if plans.len() >= PLANS_MAX {
                plans.clear();
            }
            plans.insert(task.account, plan);
        }
        self.of(task.account, task.plan)
    }

    /// The pool of an account, as far as its plan is known.
    fn of_account(&self, account: AccountId) -> &Arc<Pool> {
        let plan = self.plans.lock().unwrap_or_else(PoisonError::into_inner).get(&account).copied();
        self.of(account, plan)
    }

    /// Whether it is known which pool an account's mail leaves from: its mail says what it pays for, once it is read.
    pub(crate) fn knows(&self, account: AccountId) -> bool {
        self.of_plan.is_empty()
            || self.orders().accounts.contains_key(&account)
            || self.plans.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&account)
    }

    /// Where mail to smarthosts leaves from, which know us by another name than our address.
    pub(crate) fn to_smarthosts(&self) -> &Source {
        &self.default.source
    }

    /// A pool, and those that its mail spills over to.
    fn chain<'p>(&'p self, first: &'p Arc<Pool>) -> impl Iterator<Item = &'p Arc<Pool>> {
        let next = |pool: &&'p Arc<Pool>| self.named.get(pool.spill_over.as_ref()?);
        std::iter::successors(Some(first), next).take(self.named.len())
    }

    /// The first of a chain that may send there.
    fn first_that<'p>(
        &'p self,
        first: &'p Arc<Pool>,
        route: &Route,
        now: Timestamp,
        may: impl Fn(&Arc<Pool>, &Budget) -> bool,
    ) -> &'p Arc<Pool> {
        // A smarthost knows us by another name than our address.
        if route.is_to_smarthost() {
            return &self.default;
        }
        let mut last = first;
        for pool in self.chain(first) {
            last = pool;
            let ends = pool.spill_over.is_none();
            if ends || pool.budget(route, now).is_none_or(|budget| may(pool, &budget)) {
                break;
            }
        }
        last
    }

    /// The pool that a task leaves from now. What it takes of a warm-up is taken, but where it waits for something else.
    pub(crate) fn leave(
        &self,
        task: &Task,
        route: &Route,
        now: Timestamp,
        waits: impl Fn(&Arc<Pool>) -> bool,
    ) -> &Arc<Pool> {
        let first = self.of_task(task);
        let found =
            self.first_that(first, route, now, |pool, budget| waits(pool) || budget.take(now).is_ok());
        if found.name() != first.name() && !route.is_to_smarthost() {
            let whose = first.name().to_string();
            metrics::counter!("postrider_spilled_over_total", "pool" => whose).increment(1);
        }
        found
    }

    /// The pool that an account's mail would leave from now.
    pub(crate) fn look(&self, account: AccountId, route: &Route, now: Timestamp) -> &Arc<Pool> {
        self.first_that(self.of_account(account), route, now, |_, budget| budget.used_up(now).is_none())
    }

    /// The pools that a task may wait in.
    pub(crate) fn may_hold<'p>(&'p self, task: &Task, route: &Route) -> impl Iterator<Item = &'p Arc<Pool>> {
        let first = if route.is_to_smarthost() { &self.default } else { self.of_task(task) };
        self.chain(first)
    }

    fn adopt(&self, orders: Orders) {
        for pool in self.all() {
            pool.warm_up.begin(match orders.warm_ups.get(pool.name()) {
                Some(OrderedWarmUp::Since(date)) => Some(*date),
                Some(OrderedWarmUp::Over) => None,
                None => pool.configured,
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
    Changed,
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
    pub fn pools(&self) -> Vec<PoolStanding> {
        let (now, orders) = (self.clock.now(), self.pools.orders());
        let ordered = |pool: &Pool| orders.warm_ups.get(pool.name()).copied();
        self.pools.all().map(|pool| pool.standing(ordered(pool), now)).collect()
    }

    /// Warm-ups that were ordered of pools that are configured no more.
    #[must_use]
    pub fn warm_ups_of_nothing(&self) -> BTreeMap<PoolName, OrderedWarmUp> {
        let orders = self.pools.orders();
        let is_gone = |(pool, _): &(&PoolName, &OrderedWarmUp)| !self.pools.named.contains_key(*pool);
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
        self.judge_pool(pool.as_ref())?;
        let order = pool.map(|pool| PoolOrder::Account(account, pool));
        self.order_of_pools(About::Account(account), order).await
    }

    /// Has a pool be warmed up from another time on, or as configured.
    ///
    /// # Errors
    /// [`PoolError`].
    pub async fn warm_up_pool(
        &self,
        pool: PoolName,
        warm_up: Option<OrderedWarmUp>,
    ) -> Result<(), PoolError> {
        // What is taken back may be of a pool that is configured no more.
        self.judge_pool(warm_up.as_ref().map(|_| &pool))?;
        let order = warm_up.map(|warm_up| PoolOrder::WarmUp(pool.clone(), warm_up));
        self.order_of_pools(About::WarmUp(pool), order).await
    }

    fn judge_pool(&self, pool: Option<&PoolName>) -> Result<(), PoolError> {
        match pool {
            Some(name) if !self.pools.named.contains_key(name) => Err(PoolError::NoPool(name.clone())),
            _ => Ok(()),
        }
    }

    async fn order_of_pools(&self, about: About, order: Option<PoolOrder>) -> Result<(), PoolError> {
        for _ in 0..TRIES_MAX {
            let orders = Orders::read(&self.store).await?;
            if order.is_some() && orders.accounts.len() + orders.warm_ups.len() >= ORDERS_MAX {
                return Err(PoolError::TooMany);
            }
            let mut batch = Batch::progress();
            match order.clone() {
                Some(order) => store::pool::put(&mut batch, &orders.version, order),
                None => store::pool::take_back(&mut batch, &orders.version, &about),
            }
            match self.store.commit(batch).await {
                Ok(()) => return Ok(self.look_at_pools().await?),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(PoolError::Changed)
    }

    /// Takes on what was ordered since the last look.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn look_at_pools(&self) -> Result<(), ReadError> {
        let _looking = self.pools.looking.lock().await;
        if store::pool::version(&self.store).await? == self.pools.orders().version {
            return Ok(());
        }
        let orders = Orders::read(&self.store).await?;
        let is_moved = orders.accounts != self.pools.orders().accounts;
        self.pools.adopt(orders);
        self.share_pace();
        let now = self.clock.now();
        for pool in self.pools.all() {
            let sites: Vec<_> = pool.sites().iter().flat_map(HashMap::values).cloned().collect();
            for site in sites {
                site.wake();
                if is_moved {
                    // What waits to leave from elsewhere comes from disk again.
                    attempt::leave_to_disk(self, site.empty(), now);
                }
            }
        }
        // What waits on disk for a warm-up, too.
        self.scheduled.hasten_where(|_| true, now);
        Ok(())
    }

    /// The sites that a task may wait at, as far as there are any yet.
    pub(crate) fn sites_of(&self, task: &Task, route: &Route) -> impl Iterator<Item = Arc<Site>> {
        let tls = task.tls_demand();
        self.pools.may_hold(task, route).filter_map(move |pool| pool.known_site(route, tls))
    }

    /// The site that a task waits at; where it is at none, the one that it would come to, if there is one yet.
    pub(crate) fn site_of(&self, task: &Task, route: &Route) -> Option<Arc<Site>> {
        let holds = self.sites_of(task, route).find(|site| site.place(task).is_some());
        holds.or_else(|| {
            let pool = self.pools.look(task.account, route, self.clock.now());
            pool.known_site(route, task.tls_demand())
        })
    }
}
