//! The overview: what needs attention, the queue, and the state of the server.

use jiff::Timestamp;

use super::attention::{attention_section, entries};
use super::depth::{QueueDepth, depth_section};
use super::doctor::LastRun;
use super::queue::{QueueTop, top_table};
use super::server_status::ServerStatus;
use crate::console::{PATH, duration};
use crate::dashboard::prelude::*;

pub const PAGES: &[PageRow] = page_rows! {
    "" => show, reads ["status", "queue_top", "queue_depth", "doctor_findings"];
};

/// Destinations shown.
const TOP_MAX: u64 = 5;

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let status = ServerStatus::read(context).await?;
    let (top, last) = (QueueTop::read(context, TOP_MAX).await?, LastRun::read(context).await?);
    let depth = QueueDepth::read(context, None).await?;
    let attention = entries(&status, last.findings());
    let now = context.now();
    let body = maud_borrow! {
        div data-fragment="list" {
            (attention_section(&attention))
            @if last.run.is_none() {
                p.help { "The checks of names, ports and blocklists have not run since the server started. \
                    " a href="/console/doctor" { "Run them" } "." }
            }
            (queue_tiles(&status, now))
            (depth_section(&depth, PATH))
            section {
                div.section-head { h2 { "Longest queues" } a href="/console/queue" { "All destinations" } }
                @if top.destinations.is_empty() {
                    p.card.calm { "The queue is empty." }
                } @else {
                    (top_table(&top, now))
                }
            }
            (server_facts(&status))
        }
    };
    let page = Page::new("Overview", body).same_as(ServerStatus::call()).same_as(QueueTop::call(TOP_MAX));
    Ok(page.into())
}

/// The age of a time of the API, or a dash.
pub(super) fn age_of(time: Option<&str>, now: Timestamp) -> String {
    let time = time.and_then(|time| time.parse::<Timestamp>().ok());
    time.map_or_else(|| "–".to_owned(), |time| duration::age(now.duration_since(time).as_secs()))
}

fn queue_tiles(status: &ServerStatus, now: Timestamp) -> impl Renderable {
    let hour = &status.last_hour;
    let queue = status.queue.as_ref().map(|queue| {
        let more = |has_more| if has_more { "+" } else { "" };
        [
            ("Recipients", grouped(queue.recipients) + more(queue.has_more)),
            ("Due now", grouped(queue.due) + more(queue.has_more_due)),
            ("Held", grouped(queue.held) + more(queue.has_more_due && queue.held > 0)),
            ("Oldest", age_of(queue.oldest.as_deref(), now)),
        ]
    });
    let hour = [
        ("Accepted", grouped(hour.accepted)),
        ("Delivered", grouped(hour.delivered)),
        ("Deferred", grouped(hour.deferred)),
        ("Bounced or failed", grouped(hour.bounced.saturating_add(hour.failed))),
    ];
    maud! {
        div.columns {
            @if let Some(queue) = &queue { (tile_section("Queue", queue)) }
            (tile_section("Last hour", &hour))
        }
    }
}

fn tile_section(title: &'static str, tiles: &[(&'static str, String)]) -> impl Renderable {
    maud! {
        section {
            h2 { (title) }
            dl.tiles { @for (label, value) in tiles { div { dt { (label) } dd.tile-value { (value) } } } }
        }
    }
}

fn server_facts(status: &ServerStatus) -> impl Renderable {
    let nodes = if status.nodes == 1 { "1 node".to_owned() } else { format!("{} nodes", status.nodes) };
    let disk =
        status.disk.as_ref().map(|disk| format!("{} of {} free", file_size(disk.free_bytes), file_size(disk.bytes)));
    let certificate = status.certificate.as_ref();
    let facts = Facts::new()
        .row("Host name", &status.hostname)
        .row("Version", &status.version)
        .row("Cluster", format!("{nodes}; {} of 64 partitions on this node", status.partitions))
        .row("Store", &status.store.state)
        .optional("Disk", disk)
        .optional(
            "Certificate",
            certificate.map(|certificate| maud! { "valid until " (time_or_dash(certificate.expires_at.as_deref())) }),
        );
    maud! {
        section {
            div.section-head { h2 { "This server" } a href="/console/server" { "Listeners, store, nodes" } }
            div.card { (facts) }
        }
    }
}
