//! The report of an audit, as the API returns it.

use schema::ToSchema;
use serde::Serialize;

use crate::api_timestamp::ApiTimestamp;

pub const VIOLATIONS_MAX: usize = 1_000;

message::words! {
    /// An invariant of the ledger.
    Invariant {
        /// One line per invoice and level, one bounty per referral.
        I1 = "I1",
        /// A payout equals the sum of its lines and adjustments, a run the sum of its payouts.
        I2 = "I2",
        /// A line is paid if its payout is paid, and belongs to at most one payout.
        I3 = "I3",
        /// Stored counts and sums (paying customers, referrals by link, revenue, balances) equal what the rows add up
        /// to.
        I4 = "I4",
        /// A referral that may not earn has no open line.
        I5 = "I5",
        /// Amounts are positive and times are in order.
        I6 = "I6",
        /// An email or customer is claimed by one referral only.
        I7 = "I7",
        /// There is one default campaign, each partner has one primary link, and tokens are unique.
        I8 = "I8",
        /// Every stored fact of the processor is reflected in the ledger.
        I9 = "I9",
        /// Each state change emitted exactly one event.
        I10 = "I10",
        /// No partner is its own recruiter, directly or through others.
        I11 = "I11",
        /// No API key changes a payout run, or a commission except by reversing it.
        I12 = "I12",
    }
}

impl Invariant {
    /// The rule, in a sentence without its full stop.
    pub const fn description(self) -> &'static str {
        match self {
            Self::I1 => "There is one line per invoice and level, and one bounty per referral",
            Self::I2 => "Every payout equals its lines minus its deductions, and every run equals its payouts",
            Self::I3 => "A line is paid if its payout is paid, and is in at most one payout",
            Self::I4 => "Stored counts, revenue and balances match the rows",
            Self::I5 => "A referral that cannot earn has no open line",
            Self::I6 => "Amounts are positive, and times are in order",
            Self::I7 => "A person belongs to only one referral",
            Self::I8 => "There is one default campaign, one primary link per partner, and no duplicate link token",
            Self::I9 => "Everything that the processor reported is in the ledger",
            Self::I10 => "Every change was reported by exactly one event",
            Self::I11 => "No partner is its own recruiter, directly or through others",
            Self::I12 => "No API key has changed a payout run, or a commission other than by reversing it",
        }
    }
}

/// An invariant with its result
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditedInvariant {
    /// The invariant
    #[schema(as = String, enum = Invariant::WORDS)]
    pub invariant: Invariant,
    /// The rule
    pub description: &'static str,
    /// The number of violations in `broken`
    pub violations: usize,
}

/// A violated invariant
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Violation {
    /// The invariant
    #[schema(as = String, enum = Invariant::WORDS)]
    pub invariant: Invariant,
    /// The id of the object that violates it
    pub subject: String,
    /// A description
    pub message: String,
}

/// Number of objects checked
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditCounts {
    /// Partners
    pub partners: usize,
    /// Referrals
    pub referrals: usize,
    /// Commissions
    pub commissions: usize,
    /// Payouts
    pub payouts: usize,
}

message::words! {
    /// The state of an audit.
    AuditStatus {
        /// The audit has not ended.
        Running = "running",
        Done = "done",
    }
}

/// An audit of the ledger
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(name = "AffiliateAudit")]
pub struct AuditReport {
    /// `running` if the audit has not finished; then nothing else is known, and `ok` is false
    #[schema(as = String, enum = AuditStatus::WORDS)]
    pub status: AuditStatus,
    /// When it was started; null while it is running
    pub audited_at: Option<ApiTimestamp>,
    /// Whether all rows were checked. The audit of a very large ledger stops early and then covers only the newest rows
    pub complete: bool,
    /// Whether all invariants hold for the checked rows
    pub ok: bool,
    pub checked: AuditCounts,
    /// Violated invariants, at most 1,000
    #[schema(maxItems = VIOLATIONS_MAX)]
    pub broken: Vec<Violation>,
    /// All invariants, I1 to I12
    pub invariants: Vec<AuditedInvariant>,
}

impl AuditReport {
    /// The report of an audit that has not ended.
    pub fn running() -> Self {
        Self {
            status: AuditStatus::Running,
            audited_at: None,
            complete: false,
            ok: false,
            checked: AuditCounts::default(),
            broken: Vec::new(),
            invariants: Vec::new(),
        }
    }
}

/// The result for each invariant; `counts` has the number of violations in the order of [`Invariant::ALL`].
pub(super) fn invariants(counts: &[usize]) -> Vec<AuditedInvariant> {
    let result = |(invariant, violations): (&Invariant, &usize)| AuditedInvariant {
        invariant: *invariant,
        description: invariant.description(),
        violations: *violations,
    };
    Invariant::ALL.iter().zip(counts).map(result).collect()
}
