//! `GET /account`: access level, plan limits and usage of the account.

use std::collections::BTreeMap;
use std::sync::Arc;

use mail::account::{AccessLevel, Plan};
use mail::domain::{DomainState, SendingDomain};
use mail::id::AccountId;
use mail::quota::Noun;
use mail::usage::UsagePeriod;
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;

use crate::json_timestamp::JsonTimestamp;
use crate::problem::Problem;
use crate::request::NoInput;
use crate::schema::{self, Schemas, ToSchema};
use crate::state::AppState;

/// Optional parts of the service that are available to the account.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "one flag per part of the service")]
pub struct Features {
    inbound: bool,
    automations: bool,
    sms: bool,
    affiliates: bool,
}

#[derive(Debug, Serialize)]
pub struct AccountView {
    id: AccountId,
    email: String,
    plan: Plan,
    access_level: &'static str,
    sandbox_sender: Option<String>,
    suspended: bool,
    features: Features,
    created_at: JsonTimestamp,
}

/// Limits of the account's plan.
#[derive(Debug, Serialize)]
pub struct LimitsView {
    emails_per_month: Option<u64>,
    emails_per_day: Option<u64>,
    domains: Option<u32>,
    requests_per_second: u32,
    retention_days: u64,
    /// By storage noun; `None` is unlimited.
    storage: BTreeMap<&'static str, Option<u64>>,
}

/// Usage of the current month and day.
#[derive(Debug, Serialize)]
pub struct UsageView {
    /// Start of the calendar month (UTC).
    pub period_start: JsonTimestamp,
    pub period_end: JsonTimestamp,
    pub emails_month: u64,
    pub emails_day: u64,
    pub domains: u32,
    /// Emails of the month beyond the plan's included number.
    pub overage: u64,
    /// Time at which the daily count resets.
    pub resets_at: JsonTimestamp,
    /// Stored objects or bytes by noun; `None` if the plan has no limit or the count is still being computed.
    pub storage: BTreeMap<&'static str, Option<u64>>,
}

#[derive(Debug, Serialize)]
pub struct AccountResponse {
    account: AccountView,
    limits: LimitsView,
    usage: UsageView,
}

/// `GET /account`.
///
/// # Errors
/// The store cannot be read.
pub async fn get(state: Arc<AppState>, tenant: Tenant, _: NoInput) -> Result<AccountResponse, Problem> {
    let account = tenant.account();
    let store = state.intake.store();
    let is_verified = |domain: &SendingDomain| domain.state == DomainState::Verified;
    let verified = !store::domain::list(store, account.id, None, 1, is_verified).await?.domains.is_empty();
    let domains = store::domain::count(store, account.id).await?.number;
    let limits = state.intake.plans().of(account.plan);
    Ok(AccountResponse {
        account: AccountView {
            id: account.id,
            email: account.email.to_string(),
            plan: account.plan,
            access_level: match account.access_level(verified) {
                AccessLevel::Sandbox => "sandbox",
                AccessLevel::SelfTest => "self_test",
                AccessLevel::Production => "production",
            },
            sandbox_sender: state.options.sandbox_sender.as_ref().map(ToString::to_string),
            suspended: account.suspended,
            features: Features {
                inbound: state.options.receives_mail,
                automations: true,
                sms: state.intake.automations().has_sms_provider(),
                affiliates: limits.affiliates,
            },
            created_at: JsonTimestamp(account.created_at),
        },
        limits: LimitsView {
            emails_per_month: limits.emails_per_month,
            emails_per_day: limits.emails_per_day,
            domains: limits.domains,
            requests_per_second: limits.requests_per_second,
            retention_days: state.intake.retention().as_secs() / (24 * 3600),
            storage: Noun::ALL.iter().map(|noun| (noun.word(), limits.storage.cap(*noun))).collect(),
        },
        usage: load_usage(&state, &tenant, domains).await?,
    })
}

/// Loads the usage of the current month and day (UTC).
///
/// # Errors
/// The store cannot be read.
pub async fn load_usage(state: &AppState, tenant: &Tenant, domains: u32) -> Result<UsageView, Problem> {
    let now = state.intake.clock().now();
    let (month, day) = (UsagePeriod::month(now), UsagePeriod::day(now));
    let used = state.intake.plan_usage(tenant).await?;
    let emails = |count: i64| u64::try_from(count).unwrap_or(0);
    let limits = state.intake.plans().of(tenant.account().plan);
    let included = limits.emails_per_month.filter(|_| limits.overage);
    let mut storage = BTreeMap::new();
    for noun in Noun::ALL {
        storage.insert(noun.word(), state.intake.storage_quotas().used(tenant.account(), *noun).await?);
    }
    Ok(UsageView {
        period_start: JsonTimestamp(month.begins_at()),
        period_end: JsonTimestamp(month.ends_at()),
        emails_month: emails(used.month),
        emails_day: emails(used.day),
        domains,
        overage: included.map_or(0, |included| emails(used.month).saturating_sub(included)),
        resets_at: JsonTimestamp(day.ends_at()),
        storage,
    })
}

impl ToSchema for AccountResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Account", |_| {
            schema::object(
                "The account with its limits and usage",
                [("account", account_schema()), ("limits", limits_schema()), ("usage", usage_schema())],
            )
        })
    }
}

fn account_schema() -> Value {
    let feature = |name: &'static str| (name, schema::boolean("Whether this part of the service is available"));
    schema::object(
        "The account",
        [
            ("id", schema::string("`acct_…`")),
            ("email", schema::string("The owner's address")),
            ("plan", schema::string_enum(&["free", "pro", "scale", "dedicated"], "The plan")),
            (
                "access_level",
                schema::string_enum(
                    &["sandbox", "self_test", "production"],
                    "Which recipients and sender addresses are allowed",
                ),
            ),
            ("sandbox_sender", schema::nullable_string("Sender address for accounts without a verified domain")),
            ("suspended", schema::boolean("Whether the account is suspended: its email is rejected")),
            (
                "features",
                schema::object(
                    "Available parts of the service",
                    [feature("inbound"), feature("automations"), feature("sms"), feature("affiliates")],
                ),
            ),
            ("created_at", schema::time("When it was created")),
        ],
    )
}

fn limits_schema() -> Value {
    let number = |text: &str| json!({"type": ["integer", "null"], "minimum": 0, "description": text});
    schema::object(
        "Limits of the plan; null is unlimited",
        [
            ("emails_per_month", number("Emails per calendar month (UTC), counted per recipient")),
            ("emails_per_day", number("Emails per day (UTC), counted per recipient")),
            ("domains", number("Sending domains")),
            ("requests_per_second", schema::count("API requests per second")),
            ("retention_days", schema::count("Days for which emails are retained")),
            ("storage", storage_schema("Storage limits, as a number of objects or in bytes; null is unlimited")),
        ],
    )
}

fn storage_schema(text: &str) -> Value {
    let number = |noun: &Noun| (noun.word(), json!({"type": ["integer", "null"], "minimum": 0}));
    schema::object(text, Noun::ALL.iter().map(number).collect::<Vec<_>>())
}

fn usage_schema() -> Value {
    schema::object(
        "Usage of the account",
        [
            ("period_start", schema::time("Start of the month")),
            ("period_end", schema::time("End of the month")),
            ("emails_month", schema::count("Emails sent this month")),
            ("emails_day", schema::count("Emails sent today")),
            ("domains", schema::count("Sending domains")),
            ("overage", schema::count("Emails sent this month beyond the number that the plan includes")),
            ("resets_at", schema::time("When the daily count resets")),
            (
                "storage",
                storage_schema("Stored objects or bytes; null if the plan has no limit or the count is being computed"),
            ),
        ],
    )
}
