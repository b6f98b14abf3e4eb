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
use mail::affiliate::commission::{Commission, Status};
use mail::affiliate::partner::Partner;
use mail::affiliate::payout::{Payout, PayoutState};
use mail::affiliate::referral::Referral;
use mail::event::{EventKind, Subject};
use mail::id::AccountId;
use store::affiliate::backfill;

use super::{Auditor, Invariant};
use crate::ledger::{Fault, Ledger};

/// Events about one thing that are looked at; of what has more, the first.
const EVENTS_MAX: usize = 500;

/// When something happened of which an event tells.
#[derive(Clone, Copy)]
enum Told {
    /// In this very moment.
    At(Timestamp),
    /// Once, in this moment or later.
    Since(Timestamp),
}

/// From when on all must have been told.
#[derive(Debug, Clone, Copy)]
pub(super) struct Period {
    from: Timestamp,
    /// Since when it may have been silent.
    until: Option<Timestamp>,
}

impl Period {
    fn holds(self, at: Timestamp) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }
}

/// From when on, and until when, events must tell of everything.
pub(super) async fn period(ledger: &Ledger, account: AccountId) -> Result<Period, Fault> {
    let from = ledger.now().checked_sub(mail::event::KEPT).unwrap_or(Timestamp::MIN);
    let until = backfill::silent_since(ledger.store(), account).await?;
    Ok(Period { from, until })
}

impl Auditor<'_> {
    pub(super) async fn told_of_partner(&mut self, partner: &Partner) -> Result<(), Fault> {
        let told = [(EventKind::AffiliateCreated, Told::Since(partner.created_at))];
        self.told((partner.id.into(), &partner.id.to_string()), &told).await
    }

    pub(super) async fn told_of_referral(&mut self, referral: &Referral) -> Result<(), Fault> {
        let created = (EventKind::ReferralCreated, Told::At(referral.created_at));
        // When it converted is said by the processor's clock, and told when that is heard.
        let converted = (EventKind::ReferralConverted, Told::Since(referral.created_at));
        let told = [Some(created), referral.converted_at.map(|_| converted)];
        let told: Vec<_> = told.into_iter().flatten().collect();
        self.told((referral.id.into(), &referral.id.to_string()), &told).await
    }

    pub(super) async fn told_of_line(&mut self, line: &Commission) -> Result<(), Fault> {
        let mut told = vec![(EventKind::CommissionCreated, Told::At(line.created_at))];
        let earned = line.status.earned_at().map(|at| (EventKind::CommissionEarned, Told::At(at)));
        told.extend(earned);
        match line.status {
            Status::Reversed { reversed_at, .. } => {
                told.push((EventKind::CommissionReversed, Told::At(reversed_at)));
            }
            // Where a clock was behind, it was paid in the moment in which it was earned, and told later.
            Status::Paid { earned_at, paid_at, .. } if paid_at > earned_at => {
                told.push((EventKind::CommissionPaid, Told::At(paid_at)));
            }
            Status::Paid { .. }
            | Status::Pending { .. }
            | Status::Earned { .. }
            | Status::InPayout { .. } => {}
        }
        self.told((line.id.into(), &line.id.to_string()), &told).await
    }

    pub(super) async fn told_of_payout(&mut self, payout: &Payout) -> Result<(), Fault> {
        if payout.state == PayoutState::Dropped {
            return Ok(());
        }
        let mut told = vec![(EventKind::PayoutCreated, Told::At(payout.created_at))];
        told.extend(payout.paid_at.map(|at| (EventKind::PayoutPaid, Told::At(at))));
        if payout.state == PayoutState::Failed {
            told.push((EventKind::PayoutFailed, Told::Since(payout.created_at)));
        }
        self.told((payout.id.into(), &payout.id.to_string()), &told).await
    }

    async fn told(
        &mut self,
        (subject, id): (Subject, &str),
        wanted: &[(EventKind, Told)],
    ) -> Result<(), Fault> {
        let events = store::event::list(self.ledger.store(), self.account(), subject, EVENTS_MAX).await?;
        if events.len() == EVENTS_MAX {
            return Ok(());
        }
        for (kind, told) in wanted {
            let (at, is_it): (_, &dyn Fn(Timestamp) -> bool) = match told {
                Told::At(at) => (*at, &|created_at| created_at == *at),
                Told::Since(at) => (*at, &|_| true),
            };
            let number = events.iter().filter(|event| event.kind == *kind && is_it(event.created_at)).count();
            let is_right = number == 1 || number == 0 && !self.period.holds(at);
            self.expect(is_right, Invariant::I10, id, || format!("{} was told {number} times", kind.name()));
        }
        Ok(())
    }
}
