//! Limit of the HTTP and SMTP requests of an account: the rate of its plan, which nodes with a shared database divide.

use std::sync::Arc;

use model::account::Account;
use net::clock::Clock;
use net::limit::rate_limit::{RateLimitStatus, RequestRate};
use net::limit::rate_limiter::RateLimiter;

use crate::cluster::lease::Leases;
use crate::intake::shared_plans::SharedPlans;
use crate::services::Services;

/// Limits the requests of accounts to the rates of their plans.
pub struct RequestLimiter {
    limiter: RateLimiter,
    plans: SharedPlans,
    leases: Arc<Leases>,
    clock: Clock,
}

impl RequestLimiter {
    /// Creates a limiter. If `is_enabled` is false, requests are not limited.
    pub fn new(services: &Services, plans: SharedPlans, is_enabled: bool) -> Self {
        let (leases, clock) = (Arc::clone(&services.leases), services.clock.clone());
        Self { limiter: RateLimiter::new(is_enabled), plans, leases, clock }
    }

    /// Switches limiting on or off.
    pub fn set_enabled(&self, is_enabled: bool) {
        self.limiter.set_enabled(is_enabled);
    }

    /// Counts one request of an account. Returns `None` if requests are not limited.
    ///
    /// # Errors
    /// The limit is reached; the status contains the time of the next allowed request.
    pub fn check(&self, account: &Account) -> Result<Option<RateLimitStatus>, RateLimitStatus> {
        if !self.limiter.is_enabled() {
            return Ok(None);
        }
        let rate = RequestRate::new(self.plans.of(account.plan).requests_per_second, self.leases.nodes());
        self.limiter.check(account.id, rate, self.clock.now()).map(Some)
    }
}
