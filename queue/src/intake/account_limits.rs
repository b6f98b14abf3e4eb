//! Limits of the plan of an account: requests a second, emails a day and a month, stored rows.

use std::sync::Arc;

use model::plan::Plans;

use crate::intake::quota_tracker::QuotaTracker;
use crate::intake::request_limiter::RequestLimiter;
use crate::intake::shared_plans::SharedPlans;
use crate::intake::storage_quota::StorageQuotaTracker;
use crate::services::Services;

/// The plans, and a tracker for each kind of limit.
pub struct AccountLimits {
    pub plans: SharedPlans,
    pub requests: RequestLimiter,
    pub storage: Arc<StorageQuotaTracker>,
    pub(crate) emails: QuotaTracker,
}

impl AccountLimits {
    /// Creates the trackers. Requests are limited if `rate_limit` is set.
    pub fn new(services: &Services, emails: QuotaTracker, plans: Plans, rate_limit: bool) -> Self {
        let plans = SharedPlans::new(plans);
        let storage = StorageQuotaTracker::new(services.store.clone(), services.clock.clone(), plans.clone());
        Self {
            requests: RequestLimiter::new(services, plans.clone(), rate_limit),
            storage: Arc::new(storage),
            emails,
            plans,
        }
    }
}
