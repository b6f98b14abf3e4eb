//! Events: each move was told of once (I10).
//!
//! A row says how it stands and since when, and not how it came there. So it is asked whether that was told, once, by an
//! event of that very moment; an event id is a key of the store, and no two events have one.
//!
//! # What is not asked
//!
//! - Of what happened before events are kept ([`mail::event::KEPT`]), only that nothing was told twice.
//! - The same of all that was written since a silent back-fill began: no row says which of it nobody was to be told of.
//! - Moves before the last one of their kind: a commission that was reversed, reinstated and reversed again tells when it
//!   was reversed last.
//! - Moves of partners after they joined: which event tells of one is said by who does it, and the row keeps no trace.

use jiff::Timestamp;
use mail::affiliate::commission::{Commission, CommissionState};
use mail::affiliate::partner::Partner;
use mail::affiliate::payout::{Payout, PayoutState};
use mail::affiliate::referral::Referral;
use mail::event::{EventKind, Subject};
use mail::id::AccountId;
use store::affiliate::backfill;

use super::{Auditor, Invariant};
use crate::ledger::{Ledger, LedgerError};

/// Events about one thing that are looked at; of what has more, the first.
const EVENTS_MAX: usize = 500;

/// When something happened of which an event tells.
#[derive(Clone, Copy)]
enum EventTime {
    /// In this very moment.
    Exactly(Timestamp),
    /// Once, in this moment or later.
    NotBefore(Timestamp),
}

/// From when on all must have been told.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditedPeriod {
    from: Timestamp,
    /// Since when it may have been silent.
    until: Option<Timestamp>,
}

impl AuditedPeriod {
    fn contains(self, at: Timestamp) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}

/// From when on, and until when, events must tell of everything.
pub(super) async fn audited_period(ledger: &Ledger, account: AccountId) -> Result<AuditedPeriod, LedgerError> {
    let from = ledger.now().checked_sub(mail::event::RETENTION).unwrap_or(Timestamp::MIN);
    let until = backfill::silent_since(ledger.store(), account).await?;
    Ok(AuditedPeriod { from, until })
}

impl Auditor<'_> {
    pub(super) async fn check_partner_events(&mut self, partner: &Partner) -> Result<(), LedgerError> {
        let told = [(EventKind::AffiliateCreated, EventTime::NotBefore(partner.created_at))];
        self.check_events((partner.id.into(), &partner.id.to_string()), &told).await
    }

    pub(super) async fn check_referral_events(&mut self, referral: &Referral) -> Result<(), LedgerError> {
        let created = (EventKind::ReferralCreated, EventTime::Exactly(referral.created_at));
        // When it converted is said by the processor's clock, and told when that is heard.
        let converted = (EventKind::ReferralConverted, EventTime::NotBefore(referral.created_at));
        let told = [Some(created), referral.converted_at.map(|_| converted)];
        let told: Vec<_> = told.into_iter().flatten().collect();
        self.check_events((referral.id.into(), &referral.id.to_string()), &told).await
    }

    pub(super) async fn check_commission_events(&mut self, line: &Commission) -> Result<(), LedgerError> {
        let mut told = vec![(EventKind::CommissionCreated, EventTime::Exactly(line.created_at))];
        let earned = line.status.earned_at().map(|at| (EventKind::CommissionEarned, EventTime::Exactly(at)));
        told.extend(earned);
        match line.status {
            CommissionState::Reversed { reversed_at, .. } => {
                told.push((EventKind::CommissionReversed, EventTime::Exactly(reversed_at)));
            }
            // Where a clock was behind, it was paid in the moment in which it was earned, and told later.
            CommissionState::Paid { earned_at, paid_at, .. } if paid_at > earned_at => {
                told.push((EventKind::CommissionPaid, EventTime::Exactly(paid_at)));
            }
            CommissionState::Paid { .. }
            | CommissionState::Pending { .. }
            | CommissionState::Earned { .. }
            | CommissionState::InPayout { .. } => {}
        }
        self.check_events((line.id.into(), &line.id.to_string()), &told).await
    }

    pub(super) async fn check_payout_events(&mut self, payout: &Payout) -> Result<(), LedgerError> {
        if payout.state == PayoutState::Dropped {
            return Ok(());
        }
        let mut told = vec![(EventKind::PayoutCreated, EventTime::Exactly(payout.created_at))];
        told.extend(payout.paid_at.map(|at| (EventKind::PayoutPaid, EventTime::Exactly(at))));
        if payout.state == PayoutState::Failed {
            told.push((EventKind::PayoutFailed, EventTime::NotBefore(payout.created_at)));
        }
        self.check_events((payout.id.into(), &payout.id.to_string()), &told).await
    }

    async fn check_events(
        &mut self,
        (subject, id): (Subject, &str),
        wanted: &[(EventKind, EventTime)],
    ) -> Result<(), LedgerError> {
        let events = store::event::list(self.ledger.store(), self.account(), subject, EVENTS_MAX).await?;
        if events.len() == EVENTS_MAX {
            return Ok(());
        }
        for (kind, told) in wanted {
            let (at, is_it): (_, &dyn Fn(Timestamp) -> bool) = match told {
                EventTime::Exactly(at) => (*at, &|created_at| created_at == *at),
                EventTime::NotBefore(at) => (*at, &|_| true),
            };
            let number = events.iter().filter(|event| event.kind == *kind && is_it(event.created_at)).count();
            let is_right = number == 1 || number == 0 && !self.period.contains(at);
            self.check(is_right, Invariant::I10, id, || format!("{} was told {number} times", kind.name()));
        }
        Ok(())
    }
}
