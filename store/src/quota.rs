//! What an account keeps, counted: the rows of a noun are one range of keys, which is read in pages.
//!
//! No counter row is kept: a count follows from the rows themselves, so that it holds after a crash, for stores of older
//! versions, and whoever wrote the rows. `queue::quota` remembers what was counted.

use std::ops::Range;

use mail::id::AccountId;
use mail::quota::Noun;
use mail::received::ReceivedEmail;
use serde::{Deserialize, Serialize};

use crate::engine::{Key, ReadError, ScanOrder, Store, Value};
use crate::key::{Space, key, successor};
use crate::row::{self, SerdeRow};

/// The size of an email, of its row: the rest is not read.
#[derive(Serialize, Deserialize)]
struct EmailSizeRow {
    size_bytes: u64,
}

/// What bounds the rows of a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowBound {
    /// Quotas of these nouns.
    Quota(&'static [Noun]),
    /// Something else.
    Other(&'static str),
}

macro_rules! bounds {
    (quotas { $($counted:ident: $($noun:ident)+;)* } others { $($why:literal: $($space:ident)+;)* }) => {
        impl RowBound {
            /// What bounds the rows of a space. A new space must be named in the table, or this does not compile.
            #[must_use]
            pub fn for_space(space: Space) -> Self {
                match space {
                    $(Space::$counted => Self::Quota(&[$(Noun::$noun),+]),)*
                    $($(Space::$space)|+ => Self::Other($why),)*
                }
            }
        }
    };
}

bounds! {
quotas {
    Email: EmailBytes;
    ApiKey: ApiKeys;
    SmtpCredential: SmtpCredentials;
    DomainClaim: DomainClaims;
    Suppression: Suppressions;
    OptOut: CategoryOptOuts;
    Template: Templates;
    TemplateVersion: TemplateBytes;
    User: Users;
    ProductEvent: ProductEvents ProductEventBytes;
    Webhook: Webhooks;
    ReceivedEmail: ReceivedEmails ReceivedBytes;
    Automation: Automations;
    AutomationVersion: AutomationBytes;
    Campaign: AffiliateCampaigns;
    Partner: Affiliates;
    PartnerLink: AffiliateLinks;
    Referral: AffiliateReferrals;
    ProcessorEvent: AffiliateEventBytes;
}
others {
    "the operator's, or the service's own: no account writes it":
        Meta Node Partition StsPolicy TlsDailyStats Destination QueueCommand QueueHold Pool;
    "one row, or a fixed number of rows, an account":
        Account DomainCount EventLogHead ReceivedHead Program ProgramBy OpenPayoutRun Payer PayersOf;
    "an index of rows that are counted: a fixed number of entries a row":
        AccountByEmail ApiKeyByHash SmtpCredentialByHash DomainByName DomainClaimByName SuppressionById
        SuppressionByTime OptOutById TemplateByAlias TemplateByName UserByEmail ProductEventBy WebhookSet
        ReceivedEmailById ReceivedUse AutomationTrigger CampaignByName PartnerBy PartnerByEmail PartnerLinkByToken
        ReferralBy ReferralClaim ProcessorEventBy;
    "the plan's `domains`":
        Domain DomainSetup DomainSetupByTime;
    "one row a DNS provider that the service knows":
        DnsCredential;
    "the plan's emails a month and `email_bytes`, and the retention time":
        Recipient Attempt Body Task Hint ScheduledByTime Schedule Tracking EmailTerm EmailListed PendingDsn
        Deadline;
    "the events of rows that are counted, and the retention time":
        Event Outbox EventLog;
    "the requests a second of the plan, and the time for which they are kept":
        Idempotency IdempotencyByTime RequestLog;
    "hours and terms: a bounded number of terms a day, kept for a bounded number of days":
        Usage Metric;
    "ten imports of an account that are open, a hundred that are remembered":
        SuppressionImport SuppressionImportOpen;
    "the rate of sign-ins, and the time after which they end":
        Session SignInLink;
    "one row a credential":
        LastUsed;
    "sizes and numbers of reports are bounded, domains by the plan, days by the time for which they are kept":
        DmarcReport DmarcSource TlsReportReceived;
    "product events that are counted, and visits by the rate of an address; deleted once they are counted":
        PendingAnalytics;
    "at most 1,000 names and 200 sources a day of an account":
        EventCount;
    "product events and visits that named a person; not bounded by the plan":
        Conversion Person ConversionExport;
    "at most 50 endpoints an account, the events that they hear, and the retention time":
        WebhookDelivery WebhookDeliveryAttempt WebhookDeliveryDue;
    "bodies of received emails: `received_bytes` counts them by the rows":
        ReceivedBody;
    "product events and received events that automations hear, and the retention time":
        AutomationRun AutomationRunIndex AutomationRunWait AutomationRunSealed AutomationDue;
    "one notice a cause and account at a time":
        OwnerAlert;
    "referrals that are counted, and the events of the payment processor that are counted":
        Commission CommissionBy CommissionDue ProcessorState ProcessorStateByCustomer Adjustment PayoutItem AdjustmentBy;
    "partners and links that are counted: a fixed number of rows each":
        PartnerCustomerCount PartnerLimitGuard Skipped PartnerBalance PartnerReferralCounts PortalLink PortalLinksOf
        PartnerEmail;
    "runs that an owner drafts by hand, and the partners that are counted":
        Payout PayoutBy PayoutRun PayoutJob;
    "visits by the rate of an address and a program, and the time after which they end; not bounded by the plan":
        Visit VisitBy VisitEnd Click ClickCount SelfReferralGuard PortalSession;
    "one that goes on at a time of a program":
        Backfill BackfillOpen;
}
}

/// How far the rows of a noun are counted.
#[derive(Debug, Clone)]
pub struct QuotaCount {
    noun: Noun,
    rest: Range<Key>,
    /// The rows, or their bytes.
    pub sum: u64,
    /// What it took: the rows that were read, and their kilobytes.
    pub cost: u64,
    /// All were.
    pub is_whole: bool,
}

impl QuotaCount {
    /// Begins to count a noun of an account.
    #[must_use]
    pub fn start(account: AccountId, noun: Noun) -> Self {
        let rest = key(space_of(noun)).account(account).range();
        Self { noun, rest, sum: 0, cost: 0, is_whole: false }
    }

    /// Counts the next page.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn count_next_page(&mut self, store: &Store) -> Result<(), ReadError> {
        let limit = page_rows(self.noun);
        let page = store.scan(self.rest.clone(), ScanOrder::Ascending, limit).await?;
        self.is_whole = page.len() < limit;
        for (at, value) in &page {
            self.sum = self.sum.saturating_add(measure(self.noun, at, value)?);
            self.cost = self.cost.saturating_add(1 + value.len() as u64 / 1024);
        }
        if let Some((last, _)) = page.last() {
            self.rest.start = successor(last);
        }
        Ok(())
    }
}

/// Where the rows of a noun lie.
fn space_of(noun: Noun) -> Space {
    match noun {
        Noun::EmailBytes => Space::Email,
        Noun::Suppressions => Space::Suppression,
        Noun::CategoryOptOuts => Space::OptOut,
        Noun::Templates => Space::Template,
        Noun::TemplateBytes => Space::TemplateVersion,
        Noun::ProductEvents | Noun::ProductEventBytes => Space::ProductEvent,
        Noun::ReceivedEmails | Noun::ReceivedBytes => Space::ReceivedEmail,
        Noun::Automations => Space::Automation,
        Noun::AutomationBytes => Space::AutomationVersion,
        Noun::Webhooks => Space::Webhook,
        Noun::ApiKeys => Space::ApiKey,
        Noun::SmtpCredentials => Space::SmtpCredential,
        Noun::Users => Space::User,
        Noun::DomainClaims => Space::DomainClaim,
        Noun::Affiliates => Space::Partner,
        Noun::AffiliateLinks => Space::PartnerLink,
        Noun::AffiliateCampaigns => Space::Campaign,
        Noun::AffiliateReferrals => Space::Referral,
        Noun::AffiliateEventBytes => Space::ProcessorEvent,
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
        // The bodies lie elsewhere; the rows say how large they are.
        Noun::EmailBytes => Ok(row::decode::<SerdeRow<EmailSizeRow>>(value)?.0.size_bytes),
        Noun::ReceivedBytes => Ok(row::decode::<ReceivedEmail>(value)?.size_bytes),
        Noun::TemplateBytes | Noun::AutomationBytes | Noun::ProductEventBytes | Noun::AffiliateEventBytes => {
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
            let RowBound::Quota(nouns) = RowBound::for_space(space_of(*noun)) else {
                panic!("{noun:?} bounds no space")
            };
            assert!(nouns.contains(noun), "{noun:?}");
        }
    }
}
