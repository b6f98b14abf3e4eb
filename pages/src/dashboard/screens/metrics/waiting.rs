//! The emails that are not delivered yet: scheduled, queued and deferred now.

use hypertext::{Buffer, prelude::*};
use serde::Deserialize;

use crate::dashboard::backend::{Call, Failure};
use crate::dashboard::context::Context;
use crate::dashboard::kit::text::grouped;

/// Emails that are counted for each tile: one page of the list.
const COUNTED_MAX: &str = "100";
/// The last event of an email that was attempted and waits for a retry.
const DELAYED: &str = "email.delivery_delayed";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WaitingList {
    emails: Vec<WaitingItem>,
    has_more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WaitingItem {
    last_event: String,
}

/// A count with an address of the list that shows its emails.
struct WaitingTile {
    label: &'static str,
    count: usize,
    /// There may be more: counting stopped.
    has_more: bool,
    query: &'static str,
}

/// The emails of the account that are not delivered yet.
pub(super) struct WaitingEmails {
    tiles: Vec<WaitingTile>,
}

/// Counts the emails that wait, up to a page of each status.
pub(super) async fn read(context: &Context<'_>) -> Result<WaitingEmails, Failure> {
    if !context.allows("list_emails") {
        return Ok(WaitingEmails { tiles: Vec::new() });
    }
    let list = |status: &str| Call::new("list_emails").query("status", status).query("limit", COUNTED_MAX);
    let scheduled: WaitingList = context.read(&list("scheduled")).await?;
    let accepted: WaitingList = context.read(&list("queued,sent")).await?;
    let is_deferred = |email: &&WaitingItem| email.last_event == DELAYED;
    let deferred = accepted.emails.iter().filter(is_deferred).count();
    let tile = |label, count, has_more, query| WaitingTile { label, count, has_more, query };
    Ok(WaitingEmails {
        tiles: vec![
            tile("Scheduled", scheduled.emails.len(), scheduled.has_more, "status=scheduled"),
            tile("Queued", accepted.emails.len() - deferred, accepted.has_more, "status=sent"),
            tile("Deferred", deferred, accepted.has_more, "status=sent"),
        ],
    })
}

impl Renderable for WaitingEmails {
    fn render_to(&self, buffer: &mut Buffer) {
        let shown = |tile: &WaitingTile| grouped(tile.count as u64) + if tile.has_more { "+" } else { "" };
        maud! {
            @if self.tiles.iter().any(|tile| tile.count > 0) {
                section {
                    h2 { "Not delivered yet" }
                    dl.tiles {
                        @for tile in &self.tiles {
                            div {
                                dt { a href={ "/dashboard/emails?" (tile.query) } { (tile.label) } }
                                dd.tile-value { (shown(tile)) }
                            }
                        }
                    }
                    p.soft.small { "Emails now, of all domains, counted up to 100. Deferred emails were tried, and are tried again." }
                }
            }
        }
        .render_to(buffer);
    }
}
