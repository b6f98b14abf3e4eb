//! The queue by destination: how much waits, how long, and what binds.

use jiff::Timestamp;

use super::overview::age_of;
use super::server_status::QueueHold;
use crate::console::PATH;
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "/queue" => show, reads ["queue_top"];
};

/// Destinations shown.
const SHOWN_MAX: u64 = 100;

/// The answer of `queue top`.
#[answer]
pub(super) struct QueueTop {
    pub(super) hold: Option<QueueHold>,
    /// Recipients in the whole queue.
    pub(super) tasks: u64,
    /// Destinations in the whole queue.
    pub(super) count: u64,
    /// How the recipients were counted: `rows`, `memory`, `node_memory` or `first_rows`.
    counted: String,
    pub(super) destinations: Vec<TopDestination>,
}

/// The queue of one destination.
#[answer]
pub(super) struct TopDestination {
    /// The mail hosts, or the domain while they are not known.
    name: String,
    /// The domain, if all recipients have the same.
    domain: Option<String>,
    pool: Option<String>,
    tasks: u64,
    due: u64,
    later: u64,
    held: u64,
    oldest: Option<String>,
    next_due: Option<String>,
    connections: u64,
    limit: String,
    until: Option<String>,
    last_reply: Option<String>,
    slowed: Option<String>,
}

impl QueueTop {
    pub(super) fn call(limit: u64) -> Call {
        Call::new("queue_top").json(json!({"limit": limit}))
    }

    pub(super) async fn read(context: &Context<'_>, limit: u64) -> Result<Self, Failure> {
        context.read(&Self::call(limit)).await
    }

    /// A sentence on what the figures of a long queue leave out.
    pub(super) fn note(&self) -> Option<&'static str> {
        match self.counted.as_str() {
            "memory" => Some(
                "The queue is long, so it is counted in memory: Ready is before the first attempt, Retry is after it, \
                 and Oldest and Next cover only the first recipients of each destination.",
            ),
            "node_memory" => Some(
                "The queue is long, so only this node's partitions are counted, in memory: Ready is before the first \
                 attempt, Retry is after it, and Oldest and Next cover only the first recipients of each destination.",
            ),
            "first_rows" => Some(
                "The queue is long and still being counted after the server started: these figures cover only its \
                 beginning. Look again in a minute.",
            ),
            _ => None,
        }
    }
}

impl TopDestination {
    /// The limit that binds, in words.
    fn limit(&self) -> (&str, Tone) {
        match self.limit.as_str() {
            "paused" => ("Paused by the configuration", Tone::Warning),
            "held" => ("Held", Tone::Warning),
            "suspended" => ("Suspended", Tone::Warning),
            "resting" => ("Backing off", Tone::Bad),
            "unreachable" => ("Unreachable", Tone::Bad),
            "dns" => ("Mail host lookup", Tone::Bad),
            "rate" => ("Rate limit", Tone::Active),
            "warm_up" => ("Warm-up limit", Tone::Active),
            "connections" => ("Connection limit", Tone::Active),
            "schedule" => ("Next attempt", Tone::Neutral),
            "none" => ("Nothing", Tone::Good),
            other => (other, Tone::Neutral),
        }
    }

    fn link(&self) -> Option<String> {
        self.domain.as_deref().map(destination_page)
    }
}

/// The page of a recipient domain.
pub(super) fn destination_page(domain: &str) -> String {
    format!("{PATH}/queue/{}", encode(domain))
}

const COLUMNS: &[&str] = &["Destination", "Pool", "Waiting", "Ready", "Retry", "Held", "Oldest", "Next", "Blocked by"];

/// The destinations as a table.
pub(super) fn top_table(top: &QueueTop, now: Timestamp) -> impl Renderable {
    let table = Table::new("Queues by destination", COLUMNS)
        .numbers(&["Waiting", "Ready", "Retry", "Held", "Oldest"])
        .rows(&top.destinations, |destination| {
            let next = destination.next_due.as_deref().filter(|_| destination.due == 0 && destination.later > 0);
            Row::new()
                .cell(destination_name(destination))
                .cell(maud! { span.nowrap { (destination.pool.as_deref().unwrap_or("–")) } })
                .cell(grouped(destination.tasks))
                .cell(grouped(destination.due))
                .cell(grouped(destination.later))
                .cell(grouped(destination.held))
                .cell(age_of(destination.oldest.as_deref(), now))
                .cell(time_or_dash(next))
                .cell(limit_cell(destination))
        });
    let note = top.note();
    maud! { (table) @if let Some(note) = note { p.soft.small { (note) } } }
}

fn destination_name(destination: &TopDestination) -> impl Renderable {
    let domain = destination.domain.as_deref();
    maud! {
        @match (domain, destination.link()) {
            (Some(domain), Some(link)) => {
                a href=(link) { (domain) }
                @if domain != destination.name { span.where-mail { (destination.name) } }
            }
            _ => { (destination.name) }
        }
    }
}

fn limit_cell(destination: &TopDestination) -> impl Renderable {
    let (label, tone) = destination.limit();
    maud! {
        div.binds {
            p {
                (Badge::new(label, tone))
                @if let Some(until) = destination.until.as_ref().filter(|_| destination.limit != "schedule") {
                    " ends " (time_or_dash(Some(until)))
                }
                @if destination.connections > 0 { " · " (destination.connections) " open" }
            }
            @if let Some(slowed) = &destination.slowed { p { (slowed) } }
            @if let Some(reply) = &destination.last_reply { p.said { (reply) } }
        }
    }
}

/// Says that the whole queue is held.
pub(super) fn hold_notice(hold: Option<&QueueHold>) -> Fragment {
    let Some(hold) = hold else { return Fragment::default() };
    Fragment::new(maud! {
        div.notice.warning role="status" {
            p {
                "The whole queue has been held since the store was restored, " (time_or_dash(hold.since.as_deref())) ": "
                @if hold.has_more { "at least " } (counted(hold.recipients, "recipient")) ". " a href="/console/mail/release" { "Release it" }
            }
        }
    })
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let top = QueueTop::read(context, SHOWN_MAX).await?;
    let now = context.now();
    let shown = top.destinations.len() as u64;
    let body = maud_borrow! {
        div data-fragment="list" {
            (hold_notice(top.hold.as_ref()))
            @if top.destinations.is_empty() {
                (EmptyState { title: "The queue is empty", text: "Mail waiting for its destination is counted here, \
                    with what is blocking it.", action: None })
            } @else {
                p.soft {
                    (counted(top.tasks, "recipient")) @if top.tasks == 1 { " waits for " } @else { " wait for " } (counted(top.count, "destination"))
                    @if shown < top.count { "; the " (grouped(shown)) " longest queues are shown" } "."
                }
                (top_table(&top, now))
            }
        }
    };
    let actions = maud! {
        a.button href="/console/mail" { "Queued mail" }
        a.button href="/console/destinations/suspend" { "Suspend a destination" }
    };
    let page = Page::new("Queue by destination", body).actions(actions).same_as(QueueTop::call(SHOWN_MAX));
    Ok(page.into())
}
