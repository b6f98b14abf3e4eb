//! Limits of the plan of an account: requests a second, emails a day and a month, stored rows.

use std::sync::Arc;
use std::time::Duration;

use model::plan::Plans;
use model::usage::PlanUsage;
use store::access::Tenant;
use store::engine::ReadError;

use crate::outbox::OutboxDispatcher;
use crate::quota_tracker::QuotaTracker;
use crate::request_limiter::RequestLimiter;
use crate::services::Services;
use crate::shared_plans::SharedPlans;
use crate::storage_quota::StorageQuotaTracker;

/// Time limit for dispatching the outbox before usage is reported, so that emails just sent are counted.
const OUTBOX_WAIT_MAX: Duration = Duration::from_secs(2);

/// The plans, and a tracker for each kind of limit.
pub struct AccountLimits {
    pub plans: SharedPlans,
    pub requests: RequestLimiter,
    pub storage: Arc<StorageQuotaTracker>,
    pub(crate) emails: QuotaTracker,
    outbox: Arc<OutboxDispatcher>,
    services: Services,
}

impl AccountLimits {
    /// Creates the trackers. Requests are limited if `rate_limit` is set.
    pub(crate) fn new(
        services: Services,
        outbox: Arc<OutboxDispatcher>,
        emails: QuotaTracker,
        plans: Plans,
        rate_limit: bool,
    ) -> Self {
        let plans = SharedPlans::new(plans);
        let storage = StorageQuotaTracker::new(services.store.clone(), services.clock.clone(), plans.clone());
        Self {
            requests: RequestLimiter::new(&services, plans.clone(), rate_limit),
            storage: Arc::new(storage),
            emails,
            outbox,
            plans,
            services,
        }
    }

    /// Emails that an account has used of its plan today and this month, exact to one email.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn plan_usage(&self, tenant: &Tenant) -> Result<PlanUsage, ReadError> {
        // The quota tracker counts events that are not dispatched yet only for plans with caps.
        self.outbox.dispatch_within(OUTBOX_WAIT_MAX).await;
        self.emails.usage_of(&self.services.store, tenant.account().id, self.services.clock.now()).await
    }
}
