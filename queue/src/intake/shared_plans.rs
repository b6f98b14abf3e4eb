//! The limits of all plans, which a configuration reload replaces.

use parking_lot::RwLock;
use std::sync::Arc;

use model::account::Plan;
use model::plan::{PlanLimits, Plans};

/// The current limits of each plan. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct SharedPlans(Arc<RwLock<Plans>>);

impl SharedPlans {
    pub fn new(plans: Plans) -> Self {
        Self(Arc::new(RwLock::new(plans)))
    }

    pub fn current(&self) -> Plans {
        *self.0.read()
    }

    /// The limits of one plan.
    pub fn of(&self, plan: Plan) -> PlanLimits {
        self.0.read().of(plan)
    }

    pub fn replace(&self, plans: Plans) {
        *self.0.write() = plans;
    }
}
