//! Readings of the start page: small pages of lists, all at once.

use crate::dashboard::backend::Reply;
use crate::dashboard::prelude::*;
use crate::dashboard::screens::affiliate::payout_runs::PayoutRun;
use crate::dashboard::screens::approvals::Approval;
use crate::dashboard::screens::automations::AutomationDetail;
use crate::dashboard::screens::credentials::Credential;
use crate::dashboard::screens::domains::SendingDomain;
use crate::dashboard::screens::emails::{EmailHistory, EmailItem};
use crate::dashboard::screens::webhooks::Webhook;
use futures_util::future::{join_all, try_join, try_join3, try_join4};
use jiff::Timestamp;
use serde::de::{DeserializeOwned, IgnoredAny};

/// All that was read; `None` where the role may not read it, or there is none.
pub(super) struct StartReadings {
    pub(super) account: Option<AccountUsage>,
    /// The newest domains that are verified, and that are not.
    pub(super) verified: Option<Vec<SendingDomain>>,
    pub(super) unverified: Option<Vec<SendingDomain>>,
    pub(super) keys: Option<Vec<Credential>>,
    pub(super) emails: Option<Vec<EmailItem>>,
    pub(super) webhooks: Option<Vec<Webhook>>,
    pub(super) users: Option<usize>,
    /// The affiliate program as the API has it.
    pub(super) program: Option<Value>,
    pub(super) has_reviews: bool,
    pub(super) has_applications: bool,
    pub(super) runs: Vec<PayoutRun>,
    /// Requests that wait for a decision, the newest first; at most [`APPROVALS_MAX`].
    pub(super) approvals: Vec<Approval>,
    /// Automations with the latest run that failed.
    pub(super) failures: Vec<FailedAutomation>,
    /// The emails before those that are retained; read only if the list of emails is empty.
    pub(super) past: EmailHistory,
}

/// The most pending requests that are counted.
pub(super) const APPROVALS_MAX: usize = 50;
/// The most automations whose failed runs are read.
const FAILURES_MAX: usize = 5;

#[answer]
struct StartRun {
    completed_at: Option<String>,
    error: Option<String>,
}

/// An automation and the time and error of its latest failed run.
#[derive(Debug)]
pub(super) struct FailedAutomation {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) failed_at: Timestamp,
    pub(super) error: Option<String>,
}

#[answer]
pub(super) struct AccountUsage {
    pub(super) account: StartAccount,
    pub(super) limits: StartLimits,
    pub(super) usage: StartUsage,
}

#[answer]
pub(super) struct StartAccount {
    pub(super) plan: String,
    pub(super) access_level: String,
    pub(super) suspended: bool,
    pub(super) features: Value,
}

#[answer]
pub(super) struct StartLimits {
    pub(super) emails_per_month: Option<u64>,
    pub(super) emails_per_day: Option<u64>,
    pub(super) domains: Option<u64>,
    pub(super) storage: std::collections::BTreeMap<String, Option<u64>>,
}

#[answer]
pub(super) struct StartUsage {
    pub(super) emails_month: u64,
    pub(super) emails_day: u64,
    pub(super) domains: u64,
    pub(super) period_end: Option<String>,
    pub(super) storage: std::collections::BTreeMap<String, Option<u64>>,
}

/// Reads what the role may read and what there is.
async fn read<T: DeserializeOwned>(context: &Context<'_>, call: Call) -> Result<Option<T>, Failure> {
    read_reply(context, call, |reply| reply.read()).await
}

/// Reads the entries of a list, as [`read`].
async fn read_entries<T: DeserializeOwned>(
    context: &Context<'_>,
    list: &str,
    call: Call,
) -> Result<Option<Vec<T>>, Failure> {
    read_reply(context, call, |reply| reply.read_field(list)).await
}

async fn read_reply<T>(
    context: &Context<'_>,
    call: Call,
    read: impl Fn(&Reply) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    if !context.allows(call.operation) {
        return Ok(None);
    }
    match context.perform(&call).await.and_then(|reply| read(&reply)) {
        Ok(found) => Ok(Some(found)),
        Err(failure) if matches!(failure.status, 403 | 404) => Ok(None),
        Err(failure) => Err(failure),
    }
}

impl StartReadings {
    pub(super) async fn read(context: &Context<'_>) -> Result<Self, Failure> {
        let domains = |status| Call::new("list_domains").query("status", status).query("limit", "10");
        let of_account = try_join4(
            read::<AccountUsage>(context, Call::new("get_account")),
            read_entries(context, "domains", domains("verified")),
            read_entries(context, "domains", domains("unverified")),
            read_entries::<IgnoredAny>(context, "users", Call::new("list_users")),
        );
        let lists = try_join3(
            read_entries(context, "api_keys", Call::new("list_api_keys").query("limit", "50")),
            read_entries(context, "emails", Call::new("list_emails").query("limit", "5")),
            read_entries(context, "webhooks", Call::new("list_webhooks").query("limit", "25")),
        );
        let ((account, verified, unverified, users), (keys, emails, webhooks)) = try_join(of_account, lists).await?;
        let has_affiliates = account.as_ref().is_some_and(|one| one.account.features["affiliates"] == true);
        let program = if has_affiliates { read(context, Call::new("get_affiliate_program")).await? } else { None };
        let (reviews, applications, runs) = match &program {
            Some(_) => {
                let open = Call::new("list_affiliate_reviews").query("status", "open").query("limit", "1");
                let applied = Call::new("list_affiliates").query("status", "pending").query("limit", "1");
                let runs = Call::new("list_affiliate_payout_runs").query("limit", "5");
                try_join3(
                    read_entries::<IgnoredAny>(context, "data", open),
                    read_entries::<IgnoredAny>(context, "data", applied),
                    read_entries(context, "data", runs),
                )
                .await?
            }
            None => (None, None, None),
        };
        let pending = Call::new("list_approvals").query("status", "pending").query("limit", APPROVALS_MAX.to_string());
        let (approvals, failures) =
            try_join(read_entries(context, "approvals", pending), FailedAutomation::read_all(context)).await?;
        let has_no_emails = emails.as_ref().is_some_and(|emails: &Vec<EmailItem>| emails.is_empty());
        let past = if has_no_emails { EmailHistory::read(context).await } else { EmailHistory::default() };
        Ok(Self {
            account,
            verified,
            unverified,
            keys,
            emails,
            webhooks,
            users: users.map(|users| users.len()),
            program,
            has_reviews: reviews.is_some_and(|reviews| !reviews.is_empty()),
            has_applications: applications.is_some_and(|applications| !applications.is_empty()),
            runs: runs.unwrap_or_default(),
            approvals: approvals.unwrap_or_default(),
            failures,
            past,
        })
    }

    /// Whether the account has ever sent an email, as far as emails and counts are retained; `None` if the role may not
    /// see emails.
    pub(super) fn has_sent(&self) -> Option<bool> {
        self.emails.as_ref().map(|emails| !emails.is_empty() || self.past.has_sent)
    }
}

impl FailedAutomation {
    /// Reads the latest failed run of the newest automations that have one.
    async fn read_all(context: &Context<'_>) -> Result<Vec<Self>, Failure> {
        let active = Call::new("list_automations").query("status", "active").query("limit", "25");
        let automations: Vec<AutomationDetail> =
            read_entries(context, "automations", active).await?.unwrap_or_default();
        let failed = automations.into_iter().filter(|one| one.counts.failed > 0).take(FAILURES_MAX);
        let latest = failed.map(|AutomationDetail { id, name, .. }| async move {
            let call = Call::new("list_automation_runs").id(&id).query("status", "failed").query("limit", "1");
            // The rest of the page is shown without an automation whose runs cannot be read.
            let runs: Vec<StartRun> = read_entries(context, "runs", call).await.ok().flatten()?;
            let run = runs.into_iter().next()?;
            Some(Self { id, name, failed_at: run.completed_at?.parse().ok()?, error: run.error })
        });
        Ok(join_all(latest).await.into_iter().flatten().collect())
    }
}
