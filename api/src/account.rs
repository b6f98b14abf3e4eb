//! The account: what it may do, what its plan includes, what it has used (completions-email.md 2.7).

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

use crate::call::NoInput;
use crate::emails::view::JsonTimestamp;
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

/// What parts of the service there are.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "one for each part")]
pub struct Features {
    inbound: bool,
    automations: bool,
    sms: bool,
    affiliates: bool,
}

/// An account.
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

/// What an account may do.
#[derive(Debug, Serialize)]
pub struct LimitsView {
    emails_per_month: Option<u64>,
    emails_per_day: Option<u64>,
    domains: Option<u32>,
    requests_per_second: u32,
    retention_days: u64,
    /// By noun; null is without end.
    storage: BTreeMap<&'static str, Option<u64>>,
}

/// What an account has used.
#[derive(Debug, Serialize)]
pub struct UsageView {
    /// When the month began (UTC).
    pub period_start: JsonTimestamp,
    /// When it ends.
    pub period_end: JsonTimestamp,
    /// Emails of the month.
    pub emails_month: u64,
    /// Emails of the day.
    pub emails_day: u64,
    /// Sending domains.
    pub domains: u32,
    /// Emails of the month beyond what the plan includes.
    pub overage: u64,
    /// When the day's count begins anew.
    pub resets_at: JsonTimestamp,
    /// What is kept, by noun; null where it is without end, or is being counted.
    pub storage: BTreeMap<&'static str, Option<u64>>,
}

/// The account, its limits, its usage.
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
pub async fn get(room: Arc<AppState>, tenant: Tenant, _: NoInput) -> Result<AccountResponse, Problem> {
    let account = tenant.account();
    let store = room.intake.store();
    let is_verified = |domain: &SendingDomain| domain.state == DomainState::Verified;
    let verified = !store::domain::list(store, account.id, None, 1, is_verified).await?.domains.is_empty();
    let domains = store::domain::count(store, account.id).await?.number;
    let limits = room.intake.plans().of(account.plan);
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
            sandbox_sender: room.options.sandbox_sender.as_ref().map(ToString::to_string),
            suspended: account.suspended,
            features: Features {
                inbound: room.options.receives_mail,
                automations: true,
                sms: room.intake.automations().has_sms_provider(),
                affiliates: limits.affiliates,
            },
            created_at: JsonTimestamp(account.created_at),
        },
        limits: LimitsView {
            emails_per_month: limits.emails_per_month,
            emails_per_day: limits.emails_per_day,
            domains: limits.domains,
            requests_per_second: limits.requests_per_second,
            retention_days: room.intake.retention().as_secs() / (24 * 3600),
            storage: Noun::ALL.iter().map(|noun| (noun.word(), limits.storage.cap(*noun))).collect(),
        },
        usage: load_usage(&room, &tenant, domains).await?,
    })
}

/// What an account has used in this month and on this day.
///
/// # Errors
/// The store cannot be read.
pub async fn load_usage(room: &AppState, tenant: &Tenant, domains: u32) -> Result<UsageView, Problem> {
    let now = room.intake.clock().now();
    let (month, day) = (UsagePeriod::month(now), UsagePeriod::day(now));
    let used = room.intake.plan_usage(tenant).await?;
    let emails = |count: i64| u64::try_from(count).unwrap_or(0);
    let limits = room.intake.plans().of(tenant.account().plan);
    let included = limits.emails_per_month.filter(|_| limits.overage);
    let mut storage = BTreeMap::new();
    for noun in Noun::ALL {
        storage.insert(noun.word(), room.intake.storage_quotas().used(tenant.account(), *noun).await?);
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
                "The account, what it may do, what it has used",
                [("account", account_schema()), ("limits", limits_schema()), ("usage", usage_schema())],
            )
        })
    }
}

fn account_schema() -> Value {
    let feature = |name: &'static str| (name, schema::boolean("Whether there is this part"));
    schema::object(
        "The account",
        [
            ("id", schema::string("`acct_…`")),
            ("email", schema::string("The owner's address")),
            ("plan", schema::string_enum(&["free", "pro", "scale", "dedicated"], "What it pays for")),
            (
                "access_level",
                schema::string_enum(&["sandbox", "self_test", "production"], "To whom it may send, and from where"),
            ),
            ("sandbox_sender", schema::nullable_string("From where it may send without a domain")),
            ("suspended", schema::boolean("Nothing is accepted from it")),
            (
                "features",
                schema::object(
                    "What parts of the service there are",
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
        "What the plan includes; null is without end",
        [
            ("emails_per_month", number("Emails (one for each recipient) a calendar month, UTC")),
            ("emails_per_day", number("Emails a day, UTC")),
            ("domains", number("Sending domains")),
            ("requests_per_second", schema::count("API requests a second")),
            ("retention_days", schema::count("How long emails are kept")),
            ("storage", storage_schema("What may be kept: by number, or in bytes; null is without end")),
        ],
    )
}

fn storage_schema(text: &str) -> Value {
    let number = |noun: &Noun| (noun.word(), json!({"type": ["integer", "null"], "minimum": 0}));
    schema::object(text, Noun::ALL.iter().map(number).collect::<Vec<_>>())
}

fn usage_schema() -> Value {
    schema::object(
        "What was used",
        [
            ("period_start", schema::time("When the month began")),
            ("period_end", schema::time("When it ends")),
            ("emails_month", schema::count("Emails of the month")),
            ("emails_day", schema::count("Emails of the day")),
            ("domains", schema::count("Sending domains")),
            ("overage", schema::count("Emails of the month beyond what the plan includes")),
            ("resets_at", schema::time("When the day's count begins anew")),
            ("storage", storage_schema("What is kept; null where the plan has no end, or while it is being counted")),
        ],
    )
}
