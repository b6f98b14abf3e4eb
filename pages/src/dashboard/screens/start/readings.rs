//! What the start page reads: small pages of lists, all at once.

use futures_util::future::{try_join, try_join3, try_join4};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;

/// What was read; `None` where the role may not read it, or there is none.
pub(super) struct Readings {
    pub(super) account: Option<AccountReading>,
    /// The newest domains that are verified, and that are not.
    pub(super) verified: Option<Vec<DomainItem>>,
    pub(super) unverified: Option<Vec<DomainItem>>,
    pub(super) keys: Option<Vec<KeyItem>>,
    pub(super) emails: Option<Vec<EmailItem>>,
    pub(super) webhooks: Option<Vec<WebhookItem>>,
    pub(super) users: Option<usize>,
    pub(super) program: Option<ProgramReading>,
    pub(super) has_reviews: bool,
    pub(super) runs: Vec<RunItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AccountReading {
    pub(super) account: AccountItem,
    #[serde(default)]
    pub(super) limits: Limits,
    #[serde(default)]
    pub(super) usage: UsageItem,
}

#[derive(Debug, Deserialize)]
pub(super) struct AccountItem {
    pub(super) plan: String,
    #[serde(default)]
    pub(super) access_level: String,
    #[serde(default)]
    pub(super) suspended: bool,
    #[serde(default)]
    pub(super) features: Features,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Features {
    #[serde(default)]
    pub(super) affiliates: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Limits {
    pub(super) emails_per_month: Option<u64>,
    pub(super) emails_per_day: Option<u64>,
    pub(super) domains: Option<u64>,
    pub(super) storage: std::collections::BTreeMap<String, Option<u64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct UsageItem {
    pub(super) emails_month: u64,
    pub(super) emails_day: u64,
    pub(super) domains: u64,
    pub(super) period_end: Option<String>,
    pub(super) storage: std::collections::BTreeMap<String, Option<u64>>,
}

#[derive(Debug, Deserialize)]
struct DomainList {
    domains: Vec<DomainItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DomainItem {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) degraded_since: Option<String>,
    pub(super) last_checked_at: Option<String>,
    #[serde(default)]
    pub(super) records: Vec<RecordItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RecordItem {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) status: String,
    pub(super) error: Option<String>,
}

#[derive(Debug, Deserialize)]
struct KeyList {
    api_keys: Vec<KeyItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct KeyItem {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) enabled: bool,
    pub(super) last_used_at: Option<String>,
    pub(super) expires_at: Option<String>,
    pub(super) created_at: String,
}

#[derive(Debug, Deserialize)]
struct EmailList {
    emails: Vec<EmailItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EmailItem {
    pub(super) id: String,
    pub(super) from: String,
    pub(super) to: Vec<String>,
    #[serde(default)]
    pub(super) subject: String,
    pub(super) status: String,
    pub(super) created_at: String,
}

#[derive(Debug, Deserialize)]
struct WebhookList {
    webhooks: Vec<WebhookItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct WebhookItem {
    pub(super) id: String,
    pub(super) url: String,
    pub(super) failing_since: Option<String>,
    pub(super) disabled_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct UserList {
    users: Vec<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ProgramReading {
    pub(super) processor: Option<Processor>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Processor {
    #[serde(default)]
    pub(super) failed_events: u64,
}

#[derive(Debug, Deserialize)]
struct ReviewList {
    data: Vec<serde::de::IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct RunList {
    data: Vec<RunItem>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RunItem {
    pub(super) status: String,
    #[serde(default)]
    pub(super) partial: bool,
    #[serde(default)]
    pub(super) payouts_count: u64,
}

/// Reads what the role may read and what there is.
async fn read<T: DeserializeOwned>(context: &Context<'_>, call: Call) -> Result<Option<T>, Failure> {
    if !context.allows(call.operation) {
        return Ok(None);
    }
    match context.read(&call).await {
        Ok(found) => Ok(Some(found)),
        Err(failure) if matches!(failure.status, 403 | 404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl Readings {
    pub(super) async fn read(context: &Context<'_>) -> Result<Self, Failure> {
        let domains = |status| Call::new("list_domains").query("status", status).query("limit", "10");
        let of_account = try_join4(
            read::<AccountReading>(context, Call::new("get_account")),
            read::<DomainList>(context, domains("verified")),
            read::<DomainList>(context, domains("unverified")),
            read::<UserList>(context, Call::new("list_users")),
        );
        let lists = try_join3(
            read::<KeyList>(context, Call::new("list_api_keys").query("limit", "50")),
            read::<EmailList>(context, Call::new("list_emails").query("limit", "5")),
            read::<WebhookList>(context, Call::new("list_webhooks").query("limit", "25")),
        );
        let ((account, verified, unverified, users), (keys, emails, webhooks)) = try_join(of_account, lists).await?;
        let has_affiliates = account.as_ref().is_some_and(|one| one.account.features.affiliates);
        let program = if has_affiliates { read(context, Call::new("get_affiliate_program")).await? } else { None };
        let (reviews, runs) = match &program {
            Some(ProgramReading { .. }) => {
                let open = Call::new("list_affiliate_reviews").query("status", "open").query("limit", "1");
                let runs = Call::new("list_affiliate_payout_runs").query("limit", "5");
                try_join(read::<ReviewList>(context, open), read::<RunList>(context, runs)).await?
            }
            None => (None, None),
        };
        Ok(Self {
            account,
            verified: verified.map(|list| list.domains),
            unverified: unverified.map(|list| list.domains),
            keys: keys.map(|list| list.api_keys),
            emails: emails.map(|list| list.emails),
            webhooks: webhooks.map(|list| list.webhooks),
            users: users.map(|list| list.users.len()),
            program,
            has_reviews: reviews.is_some_and(|list| !list.data.is_empty()),
            runs: runs.map(|list| list.data).unwrap_or_default(),
        })
    }
}
