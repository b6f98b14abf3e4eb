//! What an account keeps, counted: the rows of a noun are one range of keys, which is read in pages.
//!
//! No counter row is kept: a count follows from the rows themselves, so that it holds after a crash, for stores of older
//! versions, and whoever wrote the rows. `queue::quota` remembers what was counted.

use std::ops::Range;

use mail::id::AccountId;
use mail::quota::Noun;
use mail::received::Received;

use crate::engine::{Key, Order, ReadError, Store, Value};
use crate::key::{Space, after, key};
use crate::row;

/// What bounds the rows of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// Quotas of these nouns.
    Quota(&'static [Noun]),
    /// Something else.
    Else(&'static str),
}

impl Bound {
    /// What bounds the rows of a space. A new space must say so here.
    #[must_use]
    pub fn of(space: Space) -> Self {
        match space {
            Space::ApiKey => Self::Quota(&[Noun::ApiKeys]),
            Space::SmtpCredential => Self::Quota(&[Noun::SmtpCredentials]),
            Space::Claim => Self::Quota(&[Noun::DomainClaims]),
            Space::Suppression => Self::Quota(&[Noun::Suppressions]),
            Space::OptOut => Self::Quota(&[Noun::CategoryOptOuts]),
            Space::Template => Self::Quota(&[Noun::Templates]),
            Space::TemplateVersion => Self::Quota(&[Noun::TemplateBytes]),
            Space::User => Self::Quota(&[Noun::Users]),
            Space::ProductEvent => Self::Quota(&[Noun::ProductEvents, Noun::ProductEventBytes]),
            Space::Webhook => Self::Quota(&[Noun::Webhooks]),
            Space::Received => Self::Quota(&[Noun::ReceivedEmails, Noun::ReceivedBytes]),
            Space::Automation => Self::Quota(&[Noun::Automations]),
            Space::AutomationVersion => Self::Quota(&[Noun::AutomationBytes]),
            Space::Campaign => Self::Quota(&[Noun::AffiliateCampaigns]),
            Space::Partner => Self::Quota(&[Noun::Affiliates]),
            Space::PartnerLink => Self::Quota(&[Noun::AffiliateLinks]),
            Space::Referral => Self::Quota(&[Noun::AffiliateReferrals]),
            Space::Meta
            | Space::Node
            | Space::Partition
            | Space::StsPolicy
            | Space::TlsDay
            | Space::Destination
            | Space::QueueOrder
            | Space::Pool => Self::Else("the operator's, or the service's own: no account writes it"),
            Space::Account
            | Space::DomainCount
            | Space::StreamHead
            | Space::ReceivedHead
            | Space::Program
            | Space::ProgramBy
            | Space::OpenRun
            | Space::Payer
            | Space::PayersOf => Self::Else("one row, or a fixed number of rows, an account"),
            Space::AccountByEmail
            | Space::ApiKeyByHash
            | Space::SmtpCredentialByHash
            | Space::DomainByName
            | Space::ClaimByName
            | Space::SuppressionById
            | Space::SuppressionByTime
            | Space::OptOutById
            | Space::TemplateByAlias
            | Space::TemplateByName
            | Space::UserByEmail
            | Space::ProductEventBy
            | Space::WebhookSet
            | Space::ReceivedById
            | Space::ReceivedUse
            | Space::AutomationHears
            | Space::CampaignByName
            | Space::PartnerBy
            | Space::PartnerByEmail
            | Space::PartnerLinkByToken
            | Space::ReferralBy
            | Space::ReferralClaim => {
                Self::Else("an index of rows that are counted: a fixed number of entries a row")
            }
            Space::Domain | Space::DomainSetup | Space::DomainSetupByTime => {
                Self::Else("the plan's `domains`")
            }
            Space::DnsCredential => Self::Else("one row a DNS provider that the service knows"),
            Space::Email
            | Space::Recipient
            | Space::Attempt
            | Space::Body
            | Space::Task
            | Space::Hint
            | Space::ScheduledByTime
            | Space::Schedule
            | Space::Tracking
            | Space::EmailTerm
            | Space::EmailListed
            | Space::Notice
            | Space::Deadline => {
                Self::Else("the plan's emails a month, a message's largest size, and the retention time")
            }
            Space::Event | Space::Outbox | Space::Stream => {
                Self::Else("the events of rows that are counted, and the retention time")
            }
            Space::Idempotency | Space::IdempotencyByTime | Space::RequestLog => {
                Self::Else("the requests a second of the plan, and the time for which they are kept")
            }
            Space::Usage | Space::Metric => Self::Else(
                "hours and terms: a bounded number of terms a day, kept for a bounded number of days",
            ),
            Space::Import | Space::ImportOpen => {
                Self::Else("ten imports of an account that are open, a hundred that are remembered")
            }
            Space::Session | Space::SignInLink => {
                Self::Else("the rate of sign-ins, and the time after which they end")
            }
            Space::LastUsed => Self::Else("one row a credential"),
            Space::DmarcReport | Space::DmarcSource | Space::TlsHeard => Self::Else(
                "sizes and numbers of reports are bounded, domains by the plan, days by the time for which they are kept",
            ),
            Space::Uncounted => Self::Else(
                "product events that are counted, and visits by the rate of an address; deleted once they are counted",
            ),
            Space::EventCount => Self::Else("at most 1,000 names and 200 sources a day of an account"),
            Space::Conversion | Space::Person | Space::ConversionExport => {
                Self::Else("product events and visits that named a person; not bounded by the plan")
            }
            Space::Delivery | Space::DeliveryAttempt | Space::DeliveryDue => Self::Else(
                "at most 50 endpoints an account, the events that they hear, and the retention time",
            ),
            Space::ReceivedBody => {
                Self::Else("bodies of received emails: `received_bytes` counts them by the rows")
            }
            Space::Run | Space::RunBy | Space::RunWait | Space::RunSealed | Space::AutomationDue => {
                Self::Else("product events and received events that automations hear, and the retention time")
            }
            Space::OwnerNotice => Self::Else("one notice a cause and account at a time"),
            Space::Commission
            | Space::CommissionBy
            | Space::CommissionDue
            | Space::Heard
            | Space::HeardBy
            | Space::Adjustment
            | Space::PayoutItem
            | Space::AdjustmentBy => Self::Else(
                "referrals that are counted, and what the payment processor signs of them; not bounded by the plan",
            ),
            Space::ProcessorEvent | Space::ProcessorEventBy => {
                Self::Else("what the payment processor signs, kept for 90 days; not bounded by the plan")
            }
            Space::PartnerTally
            | Space::PartnerLatest
            | Space::Skipped
            | Space::PartnerBalance
            | Space::PartnerBrought
            | Space::PortalLink
            | Space::PortalLinksOf
            | Space::PartnerLetter => {
                Self::Else("partners and links that are counted: a fixed number of rows each")
            }
            Space::Payout | Space::PayoutBy | Space::PayoutRun | Space::PayoutWork => {
                Self::Else("runs that an owner drafts by hand, and the partners that are counted")
            }
            Space::Visit
            | Space::VisitBy
            | Space::VisitEnd
            | Space::Click
            | Space::ClickCount
            | Space::OwnVisitor
            | Space::PortalSession => Self::Else(
                "visits by the rate of an address and a program, and the time after which they end; not bounded by the plan",
            ),
            Space::Backfill | Space::BackfillOpen => Self::Else("one that goes on at a time of a program"),
        }
    }
}

/// How far the rows of a noun are counted.
#[derive(Debug, Clone)]
pub struct Tally {
    noun: Noun,
    rest: Range<Key>,
    /// The rows, or their bytes.
    pub sum: u64,
    /// What it took: the rows that were read, and their kilobytes.
    pub cost: u64,
    /// All were.
    pub is_whole: bool,
}

impl Tally {
    /// Begins to count a noun of an account.
    #[must_use]
    pub fn begin(account: AccountId, noun: Noun) -> Self {
        let rest = key(space_of(noun)).account(account).range();
        Self { noun, rest, sum: 0, cost: 0, is_whole: false }
    }

    /// Counts the next page.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn go_on(&mut self, store: &Store) -> Result<(), ReadError> {
        let limit = page_rows(self.noun);
        let page = store.scan(self.rest.clone(), Order::Ascending, limit).await?;
        self.is_whole = page.len() < limit;
        for (at, value) in &page {
            self.sum = self.sum.saturating_add(measure(self.noun, at, value)?);
            self.cost = self.cost.saturating_add(1 + value.len() as u64 / 1024);
        }
        if let Some((last, _)) = page.last() {
            self.rest.start = after(last);
        }
        Ok(())
    }
}

/// Where the rows of a noun lie.
fn space_of(noun: Noun) -> Space {
    match noun {
        Noun::Suppressions => Space::Suppression,
        Noun::CategoryOptOuts => Space::OptOut,
        Noun::Templates => Space::Template,
        Noun::TemplateBytes => Space::TemplateVersion,
        Noun::ProductEvents | Noun::ProductEventBytes => Space::ProductEvent,
        Noun::ReceivedEmails | Noun::ReceivedBytes => Space::Received,
        Noun::Automations => Space::Automation,
        Noun::AutomationBytes => Space::AutomationVersion,
        Noun::Webhooks => Space::Webhook,
        Noun::ApiKeys => Space::ApiKey,
        Noun::SmtpCredentials => Space::SmtpCredential,
        Noun::Users => Space::User,
        Noun::DomainClaims => Space::Claim,
        Noun::Affiliates => Space::Partner,
        Noun::AffiliateLinks => Space::PartnerLink,
        Noun::AffiliateCampaigns => Space::Campaign,
        Noun::AffiliateReferrals => Space::Referral,
    }
}

/// Rows read at once: so few that a page of the largest rows fits in a few megabytes.
fn page_rows(noun: Noun) -> usize {
    match noun {
        Noun::TemplateBytes | Noun::AutomationBytes => 8,
        Noun::ProductEvents | Noun::ProductEventBytes | Noun::ReceivedEmails | Noun::ReceivedBytes => 200,
        _ => 1_000,
    }
}

fn measure(noun: Noun, at: &Key, value: &Value) -> Result<u64, ReadError> {
    match noun {
        // The body lies elsewhere; the row says how large it is.
        Noun::ReceivedBytes => Ok(row::decode::<Received>(value)?.size_bytes),
        Noun::TemplateBytes | Noun::AutomationBytes | Noun::ProductEventBytes => {
            Ok((at.len() + value.len()) as u64)
        }
        _ => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Bound::of` names every space, or it would not compile; here: what it names is what is counted.
    #[test]
    fn a_noun_is_counted_in_the_space_that_it_bounds() {
        for noun in Noun::ALL {
            let Bound::Quota(nouns) = Bound::of(space_of(*noun)) else { panic!("{noun:?} bounds no space") };
            assert!(nouns.contains(noun), "{noun:?}");
        }
    }
}
