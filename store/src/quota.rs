//! Quota counts: counts an account's rows of a noun, or their bytes, by scanning one key range page by page.
//!
//! There is no counter row: the count follows from the rows themselves, so it is right after a crash, for stores of
//! older versions, and regardless of who wrote the rows. `queue::intake::storage_quota` caches the counts.

use std::ops::Range;

use model::id::AccountId;
use model::quota::Noun;
use model::received::ReceivedEmail;
use serde::{Deserialize, Serialize};

use crate::codec::{self, SerdeRow};
use crate::engine::{Key, Result, ScanOrder, Store, Value};
use crate::key::{Space, key, successor};

/// The size field of an email's row; the other fields are skipped.
#[derive(Serialize, Deserialize)]
struct EmailSizeRow {
    size_bytes: u64,
}

/// The limit on the number of rows in a space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowBound {
    Quota(&'static [Noun]),
    /// Another limit, described in words.
    Other(&'static str),
}

macro_rules! bounds {
    (quotas { $($counted:ident: $($noun:ident)+;)* } others { $($why:literal: $($space:ident)+;)* }) => {
        impl RowBound {
            /// Returns what limits the rows of a space. A new space must be added to the table, or this does not
            /// compile.
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
    "written by the operator or the service, by no account":
        Meta Node Partition StsPolicy TlsDailyStats Destination QueueCommand QueueHold Pool;
    "a fixed number of rows per account":
        Account ApprovalCount DomainCount EventLogHead ReceivedHead Program ProgramBy OpenPayoutRun Payer PayersOf;
    "an index of counted rows: a fixed number of entries per row":
        AccountByEmail ApiKeyByHash SmtpCredentialByHash DomainByName DomainClaimByName SuppressionById
        SuppressionByTime OptOutById TemplateByAlias TemplateByName UserByEmail ProductEventBy WebhookSet
        ReceivedEmailById ReceivedUse AutomationTrigger CampaignByName PartnerBy PartnerByEmail PartnerLinkByToken
        ReferralBy ReferralClaim ProcessorEventBy;
    "the plan's `domains`":
        Domain DomainSetup DomainSetupByTime;
    "one row per supported DNS provider":
        DnsCredential;
    "the plan's emails per month and `email_bytes`, and the retention time":
        Recipient Attempt Body Task Hint ScheduledByTime Schedule Tracking EmailTerm EmailListed PendingDsn
        Deadline;
    "events of counted rows, and the retention time":
        Event Outbox EventLog;
    "the plan's requests per second, and the retention time":
        Idempotency IdempotencyByTime RequestLog AuditLog;
    "1,000 approvals a day and 200 pending ones per account, and the retention time":
        Approval ApprovalPending ApprovalExecuting ApprovalByKey ApprovalContent ApprovalByEnd;
    "a bounded number of values per hour or period, and the retention time":
        Usage Metric;
    "10 open and 100 stored imports per account":
        SuppressionImport SuppressionImportOpen;
    "the rate of sign-ins, and their lifetime":
        Session SignInLink;
    "50 grants per user, their refreshes, and their lifetime":
        OAuthGrant OAuthToken AuthorizationCode;
    "the rate of registrations and device requests per network, and their lifetime":
        OAuthClient OAuthClientByExpiry DeviceAuthorization DeviceUserCode;
    "one row per credential":
        LastUsed ClientSends;
    "bounded size and number of reports, the plan's `domains`, and the retention time":
        DmarcReport DmarcSource TlsReportReceived;
    "counted product events, and the rate limit of visits per address; deleted once counted":
        PendingAnalytics;
    "at most 1,000 names, and 200 sources per day, per account":
        EventCount;
    "product events and visits that named a person; not bounded by the plan":
        Conversion Person ConversionExport;
    "at most 50 endpoints per account, their events, and the retention time":
        WebhookDelivery WebhookDeliveryAttempt WebhookDeliveryDue;
    "bodies of received emails: `received_bytes` counts them by the rows":
        ReceivedBody;
    "product events and received emails that trigger automations, and the retention time":
        AutomationRun AutomationRunIndex AutomationRunWait AutomationRunSealed AutomationDue;
    "one alert per cause and account at a time":
        OwnerAlert;
    "counted referrals, and counted events of the payment processor":
        Commission CommissionBy CommissionDue ProcessorState ProcessorStateByCustomer Adjustment PayoutItem AdjustmentBy;
    "counted partners and links: a fixed number of rows each":
        PartnerCustomerCount PartnerLimitGuard Skipped PartnerBalance PartnerReferralCounts PortalLink PortalLinksOf
        PartnerEmail;
    "runs drafted by the owner, and counted partners":
        Payout PayoutBy PayoutRun PayoutJob;
    "the rate limit of visits per address and program, and their lifetime; no quota":
        Visit VisitBy VisitEnd Click ClickCount SelfReferralGuard PortalSession;
    "one running backfill per program":
        Backfill BackfillOpen;
}
}

/// A count in progress of an account's rows of one noun.
#[derive(Debug, Clone)]
pub struct QuotaCount {
    noun: Noun,
    rest: Range<Key>,
    /// The rows counted so far, or their bytes.
    pub sum: u64,
    /// Cost so far: rows read, plus kilobytes read.
    pub cost: u64,
    /// True once all rows were counted.
    pub is_whole: bool,
}

impl QuotaCount {
    pub fn start(account: AccountId, noun: Noun) -> Self {
        let rest = key(space_of(noun)).account(account).range();
        Self { noun, rest, sum: 0, cost: 0, is_whole: false }
    }

    pub async fn count_next_page(&mut self, store: &Store) -> Result<()> {
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

/// Key space of a noun's rows.
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

/// Rows per read, few enough that a page of the largest rows takes a few megabytes.
fn page_rows(noun: Noun) -> usize {
    match noun {
        Noun::TemplateBytes | Noun::AutomationBytes => 8,
        Noun::ProductEvents | Noun::ProductEventBytes | Noun::ReceivedEmails | Noun::ReceivedBytes => 200,
        _ => 1_000,
    }
}

fn measure(noun: Noun, at: &Key, value: &Value) -> Result<u64> {
    match noun {
        // Bodies are stored elsewhere; the rows record their size.
        Noun::EmailBytes => Ok(codec::decode::<SerdeRow<EmailSizeRow>>(value)?.0.size_bytes),
        Noun::ReceivedBytes => Ok(codec::decode::<ReceivedEmail>(value)?.size_bytes),
        Noun::TemplateBytes | Noun::AutomationBytes | Noun::ProductEventBytes | Noun::AffiliateEventBytes => {
            Ok((at.len() + value.len()) as u64)
        }
        _ => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `RowBound::for_space` names every space, or it would not compile. This test checks that nouns and spaces agree.
    #[test]
    fn a_noun_is_counted_in_the_space_that_its_quota_limits() {
        for noun in Noun::ALL {
            let RowBound::Quota(nouns) = RowBound::for_space(space_of(*noun)) else {
                panic!("{noun:?} bounds no space")
            };
            assert!(nouns.contains(noun), "{noun:?}");
        }
    }
}
