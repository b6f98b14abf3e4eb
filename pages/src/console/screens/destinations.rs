//! Destinations: the operator's overrides, and the destinations with mail in memory.

use serde_json::Map;

use crate::dashboard::prelude::*;

pub(super) const LIST: &str = "/console/destinations";

pub const PAGES: &[PageRow] = page_rows! {
    "/destinations" => show, reads ["destination_list", "queue_list"], forms {
        "resume" => resume, calls "destination";
    };
};

#[answer]
struct Overrides {
    destinations: Vec<Override>,
}

/// The overrides of a destination.
#[answer]
pub(super) struct Override {
    to: Option<String>,
    mail_host: Option<String>,
    suspended: Option<Suspension>,
    pub(super) connections_max: Option<u64>,
    pub(super) messages_per_second: Option<f64>,
    /// The route in words.
    #[serde(rename = "way")]
    pub(super) route: Option<String>,
}

#[answer]
struct Suspension {
    since: Option<String>,
    until: Option<String>,
    because: Option<String>,
}

#[answer]
struct ReadyQueues {
    sites: Vec<ReadyQueue>,
    in_memory: u64,
    queues_on_disk: u64,
}

/// A destination with mail in memory.
#[answer]
struct ReadyQueue {
    name: String,
    pool: String,
    ready: u64,
    connections: u64,
    connections_max: u64,
    messages_per_second: Option<f64>,
    slowed: Option<String>,
    last_error: Option<String>,
    dead_until: Option<String>,
    rate_until: Option<String>,
    warm_up_until: Option<String>,
    resting: Option<Backoff>,
}

#[answer]
struct Backoff {
    until: Option<String>,
    because: String,
}

impl Override {
    /// Reads the overrides of the destination that the query names, as `to` or `mail_host`; all fields are empty if
    /// there are none.
    pub(super) async fn read_named(context: &Context<'_>) -> Result<Self, Failure> {
        let named =
            |field: &str| Some(context.query().get(field).trim().to_ascii_lowercase()).filter(|name| !name.is_empty());
        match (named("to"), named("mail_host")) {
            (None, None) => Ok(Self::default()),
            (to, mail_host) => Self::read_of(context, to, mail_host).await,
        }
    }

    /// Reads the overrides of a recipient domain.
    pub(super) async fn read_of_domain(context: &Context<'_>, domain: &str) -> Result<Self, Failure> {
        Self::read_of(context, Some(domain.to_ascii_lowercase()), None).await
    }

    async fn read_of(context: &Context<'_>, to: Option<String>, mail_host: Option<String>) -> Result<Self, Failure> {
        let all: Overrides = context.read(&Call::new("destination_list")).await?;
        let found = all.destinations.into_iter().find(|one| one.to == to && one.mail_host == mail_host);
        Ok(found.unwrap_or_default())
    }

    pub(super) fn suspension_view(&self) -> impl Renderable {
        delivery_state(self.suspended.as_ref())
    }

    fn name(&self) -> String {
        match (&self.to, &self.mail_host) {
            (Some(domain), _) => domain.clone(),
            (None, Some(host)) => format!("Mail hosts under {host}"),
            (None, None) => "–".to_owned(),
        }
    }

    fn pace(&self) -> String {
        let connections = self.connections_max.map(|max| format!("{max} connections"));
        let rate = self.messages_per_second.map(|rate| format!("{rate} messages per second"));
        let parts: Vec<_> = connections.into_iter().chain(rate).collect();
        if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
    }
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let overrides: Overrides = context.read(&Call::new("destination_list")).await?;
    let queues: ReadyQueues = context.read(&Call::new("queue_list").json(json!({"limit": 1}))).await?;
    let body = maud_borrow! {
        (override_section(&overrides.destinations, context))
        (ready_section(&queues))
    };
    let actions = maud! {
        a.button.primary href="/console/destinations/suspend" { "Suspend" }
        a.button href="/console/destinations/pace" { "Limits" }
        a.button href="/console/destinations/route" { "Route" }
    };
    let page = Page::new("Destinations", body)
        .lead("Your overrides of the configuration for recipient domains and mail hosts.")
        .actions(actions)
        .same_as(Call::new("destination_list"));
    Ok(page.into())
}

fn override_section(overrides: &[Override], context: &Context<'_>) -> impl Renderable {
    let table = Table::of("Overrides", overrides)
        .column("Destination", |one| one.name())
        .column("Delivery", |one| delivery_state(one.suspended.as_ref()))
        .column("Limits", |one| one.pace())
        .column("Route", |one| one.route.as_deref().unwrap_or("–"))
        .column("", |one| override_actions(one, context));
    maud! {
        section {
            h2 { "Overrides" }
            @if table.is_empty() {
                (EmptyState {
                    title: "No overrides",
                    text: "Suspend a destination whose operator asks you to stop, or limit or reroute its mail. An \
                        override applies on all nodes until you remove it.",
                    action: None,
                })
            } @else {
                (table)
            }
        }
    }
}

fn delivery_state(suspension: Option<&Suspension>) -> Fragment {
    let Some(suspension) = suspension else { return Fragment::new(Badge::new("Delivers", Tone::Good)) };
    Fragment::new(maud! {
        div.binds {
            p {
                (Badge::new("Suspended", Tone::Warning))
                " Began " (time_or_dash(suspension.since.as_deref()))
                @match &suspension.until {
                    Some(until) => { ", ends " (time_or_dash(Some(until))) }
                    None => { ", until it is resumed" }
                }
            }
            @if let Some(because) = &suspension.because { p { (because) } }
        }
    })
}

fn override_actions(one: &Override, context: &Context<'_>) -> Fragment {
    let target = match (&one.to, &one.mail_host) {
        (Some(domain), _) => vec![Field::hidden("to", domain)],
        (None, Some(host)) => vec![Field::hidden("mail_host", host)],
        (None, None) => return Fragment::default(),
    };
    let form = Form::new("resume", "Resume", target).secondary();
    let pace = one.mail_host.as_ref().map(|host| format!("{LIST}/pace?mail_host={}", encode(host)));
    let route = one.to.as_ref().map(|domain| format!("{LIST}/route?to={}", encode(domain)));
    Fragment::new(maud! {
        div.tools {
            @if one.suspended.is_some() { (form.within(context)) }
            @if let Some(path) = &pace { a.button href=(path) { "Limits" } }
            @if let Some(path) = &route { a.button href=(path) { "Route" } }
        }
    })
}

impl ReadyQueue {
    /// The obstacles, in words.
    fn obstacles(&self) -> Vec<(&'static str, Option<&str>, Option<&str>)> {
        let backoff = self.resting.as_ref();
        let obstacles = [
            backoff.map(|backoff| ("Backing off", backoff.until.as_deref(), Some(backoff.because.as_str()))),
            self.dead_until.as_deref().map(|until| ("Unreachable", Some(until), self.last_error.as_deref())),
            self.rate_until.as_deref().map(|until| ("Rate limit", Some(until), None)),
            self.warm_up_until.as_deref().map(|until| ("Warm-up limit", Some(until), None)),
            self.slowed.as_deref().map(|slowed| ("Slowed", None, Some(slowed))),
        ];
        obstacles.into_iter().flatten().collect()
    }
}

fn ready_section(queues: &ReadyQueues) -> impl Renderable {
    let table = Table::of("Destinations in memory", &queues.sites)
        .column("Mail hosts", |queue| &queue.name)
        .column("Pool", |queue| &queue.pool)
        .number("Ready", |queue| grouped(queue.ready))
        .column("Connections", |queue| format!("{} of {}", queue.connections, queue.connections_max))
        .column("Rate", |queue| {
            queue.messages_per_second.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.3} per second"))
        })
        .column("What limits it", obstacle_list);
    maud! {
        section {
            h2 { "In memory on this node" }
            p.soft { (counted(queues.in_memory, "recipient")) " in memory, " (counted(queues.queues_on_disk, "queue")) " on disk." }
            @if !table.is_empty() { (table) }
        }
    }
}

fn obstacle_list(queue: &ReadyQueue) -> impl Renderable {
    let obstacles = queue.obstacles();
    maud! {
        @if obstacles.is_empty() { span.dash { "–" } }
        div.binds {
            @for (label, until, text) in &obstacles {
                p {
                    (Badge::new(*label, Tone::Warning))
                    @if let Some(until) = until { " ends " (time_or_dash(Some(until))) }
                }
                @if let Some(text) = text { p.said { (text) } }
            }
        }
    }
}

/// An order about the destination that the form names.
///
/// # Errors
/// The form names none, or two.
pub(super) fn destination_call(context: &Context<'_>, order: Value) -> Result<Call, Failure> {
    let (domain, host) = (context.form().get("to").trim(), context.form().get("mail_host").trim());
    let mut body = Map::new();
    match (domain, host) {
        ("", "") => return Err(Failure::field("to", "Enter a recipient domain, or mail hosts")),
        (domain, "") => body.insert("to".to_owned(), domain.into()),
        ("", host) => body.insert("mail_host".to_owned(), host.into()),
        _ => return Err(Failure::field("mail_host", "Enter a recipient domain or mail hosts, not both")),
    };
    body.insert("order".to_owned(), order);
    Ok(Call::new("destination").json(Value::Object(body)))
}

async fn resume(context: &Context<'_>) -> Result<Outcome, Failure> {
    context.act(&destination_call(context, json!("resume"))?, LIST, "resumed").await
}
