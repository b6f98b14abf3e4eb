//! Limits of each plan, and their defaults.
//! The operator can change them.
//!
//! An "email" of a plan is one accepted recipient: a message to three people counts three.

use crate::account::Plan;
use crate::quota::PlanQuotas;

/// Limits of an account on a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Emails per calendar month (UTC); `None` is unlimited. A hard cap unless `overage` is set.
    pub emails_per_month: Option<u64>,
    /// Emails per day (UTC), always a hard cap; `None` is unlimited.
    pub emails_per_day: Option<u64>,
    /// Emails beyond `emails_per_month` may be sent and are counted separately.
    pub overage: bool,
    /// Sending domains; `None` is unlimited.
    pub domains: Option<u32>,
    /// Average API requests per second; bursts may be twice as large.
    pub requests_per_second: u32,
    /// The affiliate program can be enabled.
    pub affiliates: bool,
    pub storage: PlanQuotas,
}

impl PlanLimits {
    /// The specification's defaults.
    pub fn for_plan(plan: Plan) -> Self {
        let (emails_per_month, emails_per_day, domains, requests_per_second) = match plan {
            Plan::Free => (Some(3_000), Some(100), Some(1), 10),
            Plan::Pro => (Some(50_000), None, Some(10), 25),
            Plan::Scale => (Some(100_000), None, Some(1_000), 100),
            Plan::Dedicated => (None, None, None, 500),
        };
        let is_paid = plan != Plan::Free;
        Self {
            emails_per_month,
            emails_per_day,
            overage: is_paid,
            domains,
            requests_per_second,
            affiliates: is_paid,
            storage: PlanQuotas::for_plan(plan),
        }
    }
}

/// The limits of all plans, as configured by the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plans {
    /// Sandbox and Free.
    pub free: PlanLimits,
    pub pro: PlanLimits,
    pub scale: PlanLimits,
    pub dedicated: PlanLimits,
}

impl Default for Plans {
    fn default() -> Self {
        Self {
            free: PlanLimits::for_plan(Plan::Free),
            pro: PlanLimits::for_plan(Plan::Pro),
            scale: PlanLimits::for_plan(Plan::Scale),
            dedicated: PlanLimits::for_plan(Plan::Dedicated),
        }
    }
}

impl Plans {
    pub fn of(&self, plan: Plan) -> PlanLimits {
        match plan {
            Plan::Free => self.free,
            Plan::Pro => self.pro,
            Plan::Scale => self.scale,
            Plan::Dedicated => self.dedicated,
        }
    }
}
