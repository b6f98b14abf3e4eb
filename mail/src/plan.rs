//! What a plan includes: the numbers that an operator may change (email-api.md "Limits",
//! completions-email.md 2.2), with the specification's as defaults.
//!
//! An "email" of a plan is one accepted recipient: a message to three people is three.

use crate::account::Plan;
use crate::quota::PlanQuotas;

/// What an account of a plan may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanLimits {
    /// Emails a calendar month (UTC) that are included; none is without end. A hard cap unless
    /// `overage` is metered.
    pub emails_per_month: Option<u64>,
    /// Emails a day (UTC), always a hard cap; none is without end.
    pub emails_per_day: Option<u64>,
    /// More than `emails_per_month` may be sent, and is counted apart.
    pub overage: bool,
    /// Sending domains; none is without end.
    pub domains: Option<u32>,
    /// API requests a second, on average; twice as many may come at once.
    pub requests_per_second: u32,
    /// The affiliate program can be enabled.
    pub affiliates: bool,
    /// How much of each noun may be kept.
    pub storage: PlanQuotas,
}

impl PlanLimits {
    /// The specification's numbers.
    #[must_use]
    pub fn for_plan(plan: Plan) -> Self {
        match plan {
            Plan::Free => Self {
                emails_per_month: Some(3_000),
                emails_per_day: Some(100),
                overage: false,
                domains: Some(1),
                requests_per_second: 10,
                affiliates: false,
                storage: PlanQuotas::for_plan(plan),
            },
            Plan::Pro => Self {
                emails_per_month: Some(50_000),
                emails_per_day: None,
                overage: true,
                domains: Some(10),
                requests_per_second: 25,
                affiliates: true,
                storage: PlanQuotas::for_plan(plan),
            },
            Plan::Scale => Self {
                emails_per_month: Some(100_000),
                emails_per_day: None,
                overage: true,
                domains: Some(1_000),
                requests_per_second: 100,
                affiliates: true,
                storage: PlanQuotas::for_plan(plan),
            },
            Plan::Dedicated => Self {
                emails_per_month: None,
                emails_per_day: None,
                overage: true,
                domains: None,
                requests_per_second: 500,
                affiliates: true,
                storage: PlanQuotas::for_plan(plan),
            },
        }
    }
}

/// The limits of all plans, as the operator has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plans {
    /// Sandbox and Free.
    pub free: PlanLimits,
    /// Pro.
    pub pro: PlanLimits,
    /// Scale.
    pub scale: PlanLimits,
    /// Dedicated.
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
    /// The limits of a plan.
    #[must_use]
    pub fn of(&self, plan: Plan) -> PlanLimits {
        match plan {
            Plan::Free => self.free,
            Plan::Pro => self.pro,
            Plan::Scale => self.scale,
            Plan::Dedicated => self.dedicated,
        }
    }
}
