//! I10: each state change emitted exactly one event.
//!
//! A row stores its current state and the time of the last change, not its history. For that change the audit looks for
//! exactly one event with the same time. Event ids are keys of the store, so they are unique.
//!
//! # Limits
//!
//! - Objects without a change within the event retention ([`model::event::RETENTION`]) are not checked. For older changes
//!   of others, the audit only checks that no event is duplicated.
//! - The latter holds for everything since the start of a silent back-fill: no row records which changes were silent.
//! - Only the last change of a kind is checked: a commission that was reversed, reinstated and reversed again stores
//!   the last reversal only.
//! - Later status changes of a partner are not checked: the row does not store which event belongs to them.

use jiff::Timestamp;
use model::affiliate::commission::{Commission, CommissionState};
use model::affiliate::partner::Partner;
use model::affiliate::payout::{Payout, PayoutState};
use model::affiliate::referral::Referral;
use model::event::{EventKind, Subject};
use model::id::AccountId;
use store::affiliate::backfill;

use super::auditor::{AuditedPeriod, Auditor};
use super::report::Invariant;
use crate::context::Context;
use crate::error::LedgerResult as Result;

/// Maximum number of events read per object. Objects with more are not checked.
const EVENTS_MAX: usize = 500;

/// Required creation time of the event of a change.
#[derive(Clone, Copy)]
enum EventTime {
    Exactly(Timestamp),
    /// Once, at this time or later.
    NotBefore(Timestamp),
}

/// Computes the audited period: from the event retention to the first silent back-fill.
pub(super) async fn audited_period(context: &Context, account: AccountId) -> Result<AuditedPeriod> {
    let from = context.now().checked_sub(model::event::RETENTION).unwrap_or(Timestamp::MIN);
    let until = backfill::silent_since(&context.store, account).await?;
    Ok(AuditedPeriod { from, until })
}

pub(super) async fn check_partner_events(audit: &mut Auditor<'_>, partner: &Partner) -> Result<()> {
    let expected = [(EventKind::AffiliateCreated, EventTime::NotBefore(partner.created_at))];
    check_events(audit, partner.id.into(), &partner.id.to_string(), &expected).await
}

pub(super) async fn check_referral_events(audit: &mut Auditor<'_>, referral: &Referral) -> Result<()> {
    let created = (EventKind::ReferralCreated, EventTime::Exactly(referral.created_at));
    // `converted_at` is the processor's time; the event is created when the fact is ingested.
    let converted = (EventKind::ReferralConverted, EventTime::NotBefore(referral.created_at));
    let expected = [Some(created), referral.converted_at.map(|_| converted)];
    let expected: Vec<_> = expected.into_iter().flatten().collect();
    check_events(audit, referral.id.into(), &referral.id.to_string(), &expected).await
}

pub(super) async fn check_commission_events(audit: &mut Auditor<'_>, line: &Commission) -> Result<()> {
    let mut expected = vec![(EventKind::CommissionCreated, EventTime::Exactly(line.created_at))];
    let earned = line.status.earned_at().map(|at| (EventKind::CommissionEarned, EventTime::Exactly(at)));
    expected.extend(earned);
    match line.status {
        CommissionState::Reversed { reversed_at, .. } => {
            expected.push((EventKind::CommissionReversed, EventTime::Exactly(reversed_at)));
        }
        // If a clock was behind, `paid_at` equals `earned_at` and the event is later.
        CommissionState::Paid { earned_at, paid_at, .. } if paid_at > earned_at => {
            expected.push((EventKind::CommissionPaid, EventTime::Exactly(paid_at)));
        }
        CommissionState::Paid { .. }
        | CommissionState::Pending { .. }
        | CommissionState::Earned { .. }
        | CommissionState::InPayout { .. } => {}
    }
    check_events(audit, line.id.into(), &line.id.to_string(), &expected).await
}

pub(super) async fn check_payout_events(audit: &mut Auditor<'_>, payout: &Payout) -> Result<()> {
    if payout.state == PayoutState::Dropped {
        return Ok(());
    }
    let mut expected = vec![(EventKind::PayoutCreated, EventTime::Exactly(payout.created_at))];
    expected.extend(payout.paid_at.map(|at| (EventKind::PayoutPaid, EventTime::Exactly(at))));
    if payout.state == PayoutState::Failed {
        expected.push((EventKind::PayoutFailed, EventTime::NotBefore(payout.created_at)));
    }
    check_events(audit, payout.id.into(), &payout.id.to_string(), &expected).await
}

async fn check_events(
    audit: &mut Auditor<'_>,
    subject: Subject,
    id: &str,
    wanted: &[(EventKind, EventTime)],
) -> Result<()> {
    // Older events are deleted.
    let is_within = |(_, expected): &(EventKind, EventTime)| match expected {
        EventTime::Exactly(at) | EventTime::NotBefore(at) => *at >= audit.period.from,
    };
    if !wanted.iter().any(is_within) {
        return Ok(());
    }
    let events = store::event::list(&audit.context.store, audit.account(), subject, EVENTS_MAX).await?;
    if events.len() == EVENTS_MAX {
        return Ok(());
    }
    for (kind, expected) in wanted {
        let (at, is_expected_time): (_, &dyn Fn(Timestamp) -> bool) = match expected {
            EventTime::Exactly(at) => (*at, &|created_at| created_at == *at),
            EventTime::NotBefore(at) => (*at, &|_| true),
        };
        let number = events.iter().filter(|event| event.kind == *kind && is_expected_time(event.created_at)).count();
        let is_count_right = number == 1 || number == 0 && !audit.period.contains(at);
        audit.check(is_count_right, Invariant::I10, id, || format!("{} was emitted {number} times", kind.name()));
    }
    Ok(())
}
