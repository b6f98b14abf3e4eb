//! `GET /account`: access level, plan limits and usage of the account.

use std::collections::BTreeMap;

use crate::prelude::*;
use model::account::{Account, Plan};
use model::domain::{DomainState, SendingDomain};
use model::quota::Noun;
use model::usage::UsagePeriod;

/// Available parts of the service
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "one flag per part of the service")]
pub struct Features {
    /// Whether this part of the service is available
    inbound: bool,
    /// Whether this part of the service is available
    automations: bool,
    /// Whether this part of the service is available
    sms: bool,
    /// Whether this part of the service is available
    affiliates: bool,
}

object_view! {
    /// The account
    pub struct AccountView, fn from_account(state: &AppState, account: &Account, is_verified: bool) {
        /// `acct_…`
        id: AccountId = account.id,
        /// The owner's address
        email: String = account.email.to_string(),
        /// The plan
        #[schema(as = String, enum = ["free", "pro", "scale", "dedicated"])]
        plan: Plan = account.plan,
        /// The recipients and sender addresses that are allowed
        #[schema(enum = ["sandbox", "self_test", "production"])]
        access_level: &'static str = account.access_level(is_verified).word(),
        /// Sender address for accounts without a verified domain
        sandbox_sender: Option<String> = state.options.sandbox_sender.as_ref().map(ToString::to_string),
        /// Whether the account is suspended: its email is rejected
        suspended: bool = account.suspended,
        features: Features = Features {
            inbound: state.options.receives_mail,
            automations: true,
            sms: state.accounts.automations.engine.has_sms_provider(),
            affiliates: state.accounts.limits.plans.of(account.plan).affiliates,
        },
        /// When it was created
        created_at: JsonTimestamp = JsonTimestamp(account.created_at),
    }
}

object_view! {
    /// Limits of the plan; null is unlimited
    pub struct LimitsView, fn from_account(
        state: &AppState, account: &Account;
        let limits = state.accounts.limits.plans.of(account.plan)
    ) {
        /// Emails per calendar month (UTC), counted per recipient
        emails_per_month: Option<u64> = limits.emails_per_month,
        /// Emails per day (UTC), counted per recipient
        emails_per_day: Option<u64> = limits.emails_per_day,
        /// Sending domains
        domains: Option<u32> = limits.domains,
        /// API requests per second
        requests_per_second: u32 = limits.requests_per_second,
        /// Days for which emails are retained
        retention_days: u64 = state.queue.delivery.policy.current().retention.as_secs() / (24 * 3600),
        /// Storage limits, as a number of objects or in bytes; null is unlimited
        storage: StorageNumbers = StorageNumbers(
            Noun::ALL.iter().map(|noun| (noun.word(), limits.storage.cap(*noun))).collect(),
        ),
    }
}

/// Usage of the account
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageView {
    /// Start of the month
    pub period_start: JsonTimestamp,
    /// End of the month
    pub period_end: JsonTimestamp,
    /// Emails sent this month
    pub emails_month: u64,
    /// Emails sent today
    pub emails_day: u64,
    /// Sending domains
    pub domains: u32,
    /// Emails sent this month beyond the number that the plan includes
    pub overage: u64,
    /// When the daily count resets
    pub resets_at: JsonTimestamp,
    /// Stored objects or bytes; null if the plan has no limit or the count is being computed
    pub storage: StorageNumbers,
}

/// A number of objects or bytes for each noun of [`Noun::ALL`], or null.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct StorageNumbers(BTreeMap<&'static str, Option<u64>>);

impl ToSchema for StorageNumbers {
    fn schema(schemas: &mut Schemas) -> Value {
        let number = Option::<u64>::schema(schemas);
        let described = |noun: &Noun| {
            let mut property = number.clone();
            property["description"] = json!(noun.description());
            (noun.word().to_owned(), property)
        };
        let properties: Value = Noun::ALL.iter().map(described).collect();
        let required: Vec<&str> = Noun::ALL.iter().map(|noun| noun.word()).collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

/// The account with its limits and usage
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "Account")]
pub struct AccountResponse {
    account: AccountView,
    limits: LimitsView,
    usage: UsageView,
}

/// `GET /account`.
pub async fn get(state: State, tenant: Tenant, _: NoInput) -> Result<AccountResponse> {
    let account = tenant.account();
    let store = &state.services.store;
    let is_verified = |domain: &SendingDomain| domain.state == DomainState::Verified;
    let verified = !store::domain::list(store, account.id, None, 1, is_verified).await?.domains.is_empty();
    let domains = store::domain::count(store, account.id).await?.number;
    Ok(AccountResponse {
        account: AccountView::from_account(&state, account, verified),
        limits: LimitsView::from_account(&state, account),
        usage: load_usage(&state, &tenant, domains).await?,
    })
}

/// Loads the usage of the current month and day (UTC).
pub async fn load_usage(state: &AppState, tenant: &Tenant, domains: u32) -> Result<UsageView> {
    let now = state.services.clock.now();
    let (month, day) = (UsagePeriod::month(now), UsagePeriod::day(now));
    let used = state.queue.events.outbox.plan_usage(tenant).await?;
    let emails = |count: i64| u64::try_from(count).unwrap_or(0);
    let limits = state.accounts.limits.plans.of(tenant.account().plan);
    let included = limits.emails_per_month.filter(|_| limits.overage);
    let mut storage = BTreeMap::new();
    for noun in Noun::ALL {
        storage.insert(noun.word(), state.accounts.limits.storage.used(tenant.account(), *noun).await?);
    }
    Ok(UsageView {
        period_start: JsonTimestamp(month.begins_at()),
        period_end: JsonTimestamp(month.ends_at()),
        emails_month: emails(used.month),
        emails_day: emails(used.day),
        domains,
        overage: included.map_or(0, |included| emails(used.month).saturating_sub(included)),
        resets_at: JsonTimestamp(day.ends_at()),
        storage: StorageNumbers(storage),
    })
}
