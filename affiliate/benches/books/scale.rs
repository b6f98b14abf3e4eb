//! Size of the generated data; all rows are derived from a number.

use jiff::{SignedDuration, Timestamp};
use model::affiliate::commission::CommissionLevel;
use model::affiliate::partner::PartnerStatus;
use model::id::{PartnerId, PayoutId, PayoutRunId, ReferralId};

/// Age of the oldest data in days.
const DAYS: i64 = 5 * 365;
/// Age of the newest copied row in days. It exceeds the event retention, so the audit expects no events for copied
/// rows.
const DAYS_OLD: i64 = 140;
/// Number of paid runs; one more is approved, and one is a draft.
pub(crate) const PAID_RUNS: u32 = 24;

/// Final status of a generated referral.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Lead,
    /// A lead that waits for review.
    Flagged,
    Rejected,
    Trialing,
    Refunded,
    Cancelled,
    /// Paying, after the owner allowed it.
    Allowed,
    Active,
}

#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) referrals: u64,
    pub(crate) partners: u64,
    /// Invoices per customer.
    pub(crate) invoices: u64,
    pub(crate) begin: Timestamp,
    pub(crate) end: Timestamp,
}

pub(crate) fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// A pseudo-random number derived from `number`.
pub(crate) fn spread(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20
}

/// Returns the fraction `part / whole` of a duration.
fn share(duration: SignedDuration, part: u64, whole: u64) -> SignedDuration {
    let ms = duration.as_millis() * i128::from(part) / i128::from(whole.max(1));
    SignedDuration::from_millis(ms.try_into().unwrap())
}

impl Scale {
    pub(crate) fn new(now: Timestamp, referrals: u64, lines: u64) -> Self {
        let referrals = referrals.next_multiple_of(20).max(200);
        // Fifteen of twenty referrals pay, and one line in eleven is a recruiter's.
        let lines_per_invoice = referrals * 15 * 11;
        let invoices = ((lines * 20 * 10 + lines_per_invoice / 2) / lines_per_invoice).max(1);
        let partners = (referrals / 100).clamp(50, 10_000).next_multiple_of(50);
        Self { referrals, partners, invoices, begin: now - days(DAYS), end: now - days(DAYS_OLD) }
    }

    fn span(&self) -> SignedDuration {
        self.end.duration_since(self.begin)
    }

    /// Time at which a partner joined: in the year before the first referral.
    pub(crate) fn joined_at(&self, partner: u64) -> Timestamp {
        self.begin - days(365) + share(days(365), partner, self.partners)
    }

    pub(crate) fn partner_id(&self, partner: u64) -> PartnerId {
        PartnerId::new(self.joined_at(partner), spread(partner).into())
    }

    pub(crate) fn created_at(&self, referral: u64) -> Timestamp {
        self.begin + share(self.span(), referral, self.referrals)
    }

    pub(crate) fn referral_id(&self, referral: u64) -> ReferralId {
        ReferralId::new(self.created_at(referral), spread(referral).into())
    }

    /// Time at which an invoice was paid: monthly, or more often for recent referrals.
    pub(crate) fn paid_at(&self, referral: u64, invoice: u64) -> Timestamp {
        let created_at = self.created_at(referral);
        let month = share(self.end.duration_since(created_at), 1, self.invoices + 1).min(days(30));
        created_at + share(month, invoice + 1, 1)
    }

    /// The partner of a referral; never one that was not active.
    pub(crate) fn partner_of(&self, referral: u64) -> u64 {
        let partner = spread(referral) % self.partners;
        if partner % 50 < 3 { partner + 4 } else { partner }
    }

    /// The partner who earns a line of this level.
    pub(crate) fn earner(&self, referral: u64, level: CommissionLevel) -> u64 {
        let partner = self.partner_of(referral);
        match level {
            CommissionLevel::One | CommissionLevel::OneFixed => partner,
            CommissionLevel::Two => recruiter(partner).unwrap(),
        }
    }

    /// The run that contains a line of this time: paid runs, then the approved one, then none yet.
    pub(crate) fn run_of(&self, at: Timestamp) -> u32 {
        let part = at.duration_since(self.begin).as_millis() * i128::from(PAID_RUNS + 2) / self.span().as_millis();
        part.try_into().unwrap()
    }

    pub(crate) fn run_at(&self, run: u32) -> Timestamp {
        self.begin + share(self.span(), u64::from(run) + 1, u64::from(PAID_RUNS) + 2) + days(31)
    }

    pub(crate) fn run_id(&self, run: u32) -> PayoutRunId {
        PayoutRunId::new(self.run_at(run), spread(run.into()).into())
    }

    /// Returns the id of a partner's payout in a run; `number` distinguishes several.
    pub(crate) fn payout_id(&self, run: u32, partner: u64, number: u64) -> PayoutId {
        let chance = spread((u64::from(run) * self.partners + partner) * 4 + number);
        PayoutId::new(self.run_at(run), chance.into())
    }
}

/// One partner in ten was recruited by the partner before.
pub(crate) fn recruiter(partner: u64) -> Option<u64> {
    (partner % 10 == 9).then(|| partner - 1)
}

pub(crate) fn standing(partner: u64) -> PartnerStatus {
    match partner % 50 {
        0 => PartnerStatus::Pending,
        1 => PartnerStatus::Invited,
        2 => PartnerStatus::Rejected,
        3 => PartnerStatus::Suspended,
        _ => PartnerStatus::Active,
    }
}

pub(crate) fn fate(referral: u64) -> Fate {
    match referral % 20 {
        0 | 1 => Fate::Lead,
        2 => Fate::Flagged,
        3 => Fate::Rejected,
        4 => Fate::Trialing,
        5 => Fate::Refunded,
        6 => Fate::Cancelled,
        7 => Fate::Allowed,
        _ => Fate::Active,
    }
}

/// Common part of the processor's ids of a referral's objects.
pub(crate) fn stem(referral: u64) -> String {
    format!("{referral:08}y")
}
