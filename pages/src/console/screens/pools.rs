//! Pools of source addresses: who sends from them, and their warm-up.

use std::collections::BTreeMap;

use crate::console::PATH;
use crate::dashboard::kit::chart::{Chart, ChartKind, Series, Unit, as_f64};
use crate::dashboard::prelude::*;

const LIST: &str = "/console/pools";
/// Accounts and providers shown of one pool.
const SHOWN_MAX: usize = 20;

pub const PAGES: &[PageRow] = page_rows! {
    "/pools" => show, reads ["pool_list"];
    "/pools/assign" => show_assign, reads ["pool_list"], forms {
        "assign" => assign, calls "pool_assign";
    };
    "/pools/{name}/warm-up" => show_warm_up, reads ["pool_list"], forms {
        "warm-up" => warm_up, calls "pool_warm_up";
    };
};

#[answer]
struct PoolList {
    pools: Vec<Pool>,
    not_configured: OrphanedOrders,
}

#[answer]
struct OrphanedOrders {
    accounts: BTreeMap<String, Vec<String>>,
}

#[answer]
struct Pool {
    name: String,
    addresses: Vec<String>,
    hostname: Option<String>,
    plans: Vec<String>,
    accounts: Vec<String>,
    spill_over: Option<String>,
    warm_up: Option<WarmUp>,
    /// Messages for each provider on each day.
    curve: Vec<u64>,
    warm_up_ordered: Value,
    ready: u64,
}

#[answer]
struct WarmUp {
    since: String,
    day: usize,
    days: usize,
    messages_per_day: u64,
    used_up: Vec<UsedUp>,
}

/// A provider that gets no more mail for now.
#[answer]
struct UsedUp {
    provider: String,
    until: Option<String>,
}

impl Pool {
    /// The operator's order about the warm-up, in words.
    fn order(&self) -> Option<String> {
        match &self.warm_up_ordered {
            Value::Null => None,
            Value::String(_) => Some("You ended the warm-up".to_owned()),
            order => Some(format!("You set its first day to {}", order["since"].as_str().unwrap_or("–"))),
        }
    }

    fn facts(&self) -> Facts {
        let addresses =
            if self.addresses.is_empty() { "The system chooses".to_owned() } else { self.addresses.join(", ") };
        let plans: Vec<_> = self.plans.iter().map(|plan| sentence_case(plan)).collect();
        Facts::new()
            .row("Addresses", addresses)
            .optional("Name in EHLO", self.hostname.as_deref())
            .optional("Plans", (!plans.is_empty()).then(|| plans.join(", ")))
            .optional("Above the warm-up limit", self.spill_over.as_ref().map(|pool| format!("leaves from {pool}")))
            .row("Ready to send", grouped(self.ready))
            .optional("Override", self.order())
    }

    /// The curve of a warm-up in progress.
    fn chart(&self) -> Option<Chart> {
        let warm_up = self.warm_up.as_ref()?;
        let labels: Vec<_> = (1..=self.curve.len()).map(|day| day.to_string()).collect();
        let value = |messages: &u64| Some(as_f64(*messages));
        let today = |(index, messages): (usize, &u64)| (index + 1 == warm_up.day).then(|| as_f64(*messages));
        let chart = Chart::new(ChartKind::Lines, "Warm-up", Unit::Count, "Day", labels)
            .note("Messages per day from this pool to each provider.")
            .series(Series::new("Allowed", self.curve.iter().map(value).collect()))
            .series(
                Series::new("Today", self.curve.iter().enumerate().map(today).collect())
                    .total(grouped(warm_up.messages_per_day)),
            );
        Some(chart)
    }
}

fn list_call() -> Call {
    Call::new("pool_list")
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let list: PoolList = context.read(&list_call()).await?;
    let orphaned = &list.not_configured.accounts;
    let body = maud_borrow! {
        @if !orphaned.is_empty() {
            div.notice.warning role="status" {
                @for (pool, accounts) in orphaned {
                    p { "The pool " (pool) " is not configured. Emails of the accounts assigned to it (" (accounts.len()) ") are \
                        sent from the pool of their plan." }
                }
            }
        }
        div.sections { @for pool in &list.pools { (pool_view(pool)) } }
    };
    let actions = maud! { a.button.primary href="/console/pools/assign" { "Assign an account" } };
    let page = Page::new("Pools", body)
        .lead("Source addresses by plan and account, as defined in [[delivery.pools]] in the configuration.")
        .actions(actions)
        .same_as(list_call());
    Ok(page.into())
}

fn pool_view(pool: &Pool) -> impl Renderable {
    let accounts: Vec<_> = pool.accounts.iter().take(SHOWN_MAX).collect();
    let more = pool.accounts.len().saturating_sub(SHOWN_MAX);
    maud! {
        section {
            div.section-head {
                h2 { (pool.name) }
                a href={ (LIST) "/" (encode(&pool.name)) "/warm-up" } { "Change the warm-up of " (pool.name) }
            }
            div.card {
                p {
                    @match &pool.warm_up {
                        Some(warm_up) => {
                            (Badge::new("Warming up", Tone::Active))
                            " Day " (warm_up.day) " of " (warm_up.days) ", since " (warm_up.since) ": "
                            (grouped(warm_up.messages_per_day)) " messages to each provider today."
                        }
                        None => { (Badge::new("Warm", Tone::Good)) }
                    }
                }
                (pool.facts())
                @if !pool.accounts.is_empty() {
                    p.small { "Assigned accounts:" }
                    ul.plain {
                        @for account in &accounts { li { a href={ (PATH) "/accounts/" (encode(account)) } { (account) } } }
                        @if more > 0 { li { (more) " more" } }
                    }
                }
                @if let Some(warm_up) = pool.warm_up.as_ref().filter(|warm_up| !warm_up.used_up.is_empty()) {
                    p.small { "Today's limit is used up for:" }
                    ul.plain {
                        @for used in warm_up.used_up.iter().take(SHOWN_MAX) {
                            li { (used.provider) ", until " (time_or_dash(used.until.as_deref())) }
                        }
                    }
                }
            }
            @if let Some(chart) = pool.chart() { (chart) }
        }
    }
}

async fn show_assign(context: &Context<'_>) -> Result<View, Failure> {
    let list: PoolList = context.read(&list_call()).await?;
    let names = list.pools.iter().map(|pool| (pool.name.clone(), pool.name.clone()));
    let choices = std::iter::once((String::new(), "The plan's pool".to_owned())).chain(names).collect();
    let account = context.query().get("account");
    let fields = vec![
        Field::text("account", "Account").required().value(account).placeholder("acct_… or owner@example.com"),
        Field::new("pool", "Pool", Control::Select(choices)),
    ];
    let form = Form::new("assign", "Assign", fields);
    let body = maud_borrow! { div.card { (form.within(context)) } };
    let example = if account.is_empty() { "owner@example.com" } else { account };
    let pool = list.pools.first().map_or("default", |pool| pool.name.as_str());
    let call = Call::new("pool_assign").json(json!({"account": example, "pool": pool}));
    Ok(Page::new("Assign an account to a pool", body).below(LIST, "Pools").same_as(call).into())
}

async fn assign(context: &Context<'_>) -> Result<Outcome, Failure> {
    let (account, pool) = (context.form().get("account").trim(), context.form().get("pool").trim());
    if account.is_empty() {
        return Err(Failure::field("account", "Enter an account id or the owner's address"));
    }
    let pool = Some(pool).filter(|pool| !pool.is_empty());
    context.act(&Call::new("pool_assign").json(json!({"account": account, "pool": pool})), LIST, "assigned").await
}

async fn show_warm_up(context: &Context<'_>) -> Result<View, Failure> {
    let list: PoolList = context.read(&list_call()).await?;
    let name = context.parameter("name");
    let pool = list.pools.iter().find(|pool| pool.name == name).ok_or_else(Failure::not_found)?;
    let choices = choices(&[
        ("configured", "As configured"),
        ("since", "It began on this day"),
        ("over", "It has ended: the addresses are warmed up"),
    ]);
    let (state, day) = match &pool.warm_up_ordered {
        Value::Null => ("configured", ""),
        Value::String(_) => ("over", ""),
        order => ("since", order["since"].as_str().unwrap_or_default()),
    };
    let fields = vec![
        Field::new("start", "Warm-up", Control::Radio(choices)).value(state),
        Field::text("since", "First day")
            .value(day)
            .placeholder("2026-01-31")
            .help("In UTC; only if you set a first day."),
    ];
    let form = Form::new("warm-up", "Save", fields);
    let body = maud_borrow! { div.card { (form.within(context)) } @if let Some(chart) = pool.chart() { (chart) } };
    let call = Call::new("pool_warm_up").json(json!({"pool": name, "warm_up": null}));
    Ok(Page::new(format!("Warm-up of {name}"), body).below(LIST, "Pools").same_as(call).into())
}

async fn warm_up(context: &Context<'_>) -> Result<Outcome, Failure> {
    let day = context.form().get("since").trim();
    let order = match context.form().get("start") {
        "over" => json!("over"),
        "since" if day.parse::<jiff::civil::Date>().is_err() => {
            return Err(Failure::field("since", "Enter a date like 2026-01-31"));
        }
        "since" => json!({"since": day}),
        _ => Value::Null,
    };
    let call = Call::new("pool_warm_up").json(json!({"pool": context.parameter("name"), "warm_up": order}));
    context.act(&call, LIST, "warm_up").await
}
