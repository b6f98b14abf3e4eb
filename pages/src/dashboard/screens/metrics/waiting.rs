//! The emails without any delivered recipient that still wait: scheduled, queued and deferred now.

use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::EmailItem;
use futures_util::future::try_join;

/// Emails that are counted for each tile: one page of the list.
const COUNTED_MAX: &str = "100";
/// The last event of an email that was attempted and waits for a retry.
const DELAYED: &str = "email.delivery_delayed";

/// A count, with the query of the list that shows its emails if the list has such a filter.
struct WaitingTile {
    label: &'static str,
    count: usize,
    /// There may be more: counting stopped.
    has_more: bool,
    query: Option<&'static str>,
}

/// Counts the emails of the account that wait and have no delivered recipient, up to a page of each status.
pub(super) async fn read(context: &Context<'_>) -> Result<Fragment, Failure> {
    if !context.allows("list_emails") {
        return Ok(Fragment::default());
    }
    let list = |status: &str| Call::new("list_emails").query("status", status).query("limit", COUNTED_MAX);
    let (scheduled, accepted) = (list("scheduled"), list("queued,sent"));
    let (scheduled, accepted): (List<EmailItem>, List<EmailItem>) =
        try_join(context.read_list("emails", &scheduled), context.read_list("emails", &accepted)).await?;
    let is_deferred = |email: &&EmailItem| email.last_event == DELAYED;
    let deferred = accepted.entries.iter().filter(is_deferred).count();
    let tile = |label, count, has_more, query| WaitingTile { label, count, has_more, query };
    Ok(Fragment::new(waiting_view(&[
        tile("Scheduled", scheduled.entries.len(), scheduled.next_cursor.is_some(), Some("status=scheduled")),
        tile("Queued", accepted.entries.len() - deferred, accepted.next_cursor.is_some(), Some("status=sent")),
        // The list has no filter for them.
        tile("Deferred", deferred, accepted.next_cursor.is_some(), None),
    ])))
}

fn waiting_view(tiles: &[WaitingTile]) -> impl Renderable {
    let shown = |tile: &WaitingTile| grouped(tile.count as u64) + if tile.has_more { "+" } else { "" };
    maud! {
        @if tiles.iter().any(|tile| tile.count > 0 || tile.has_more) {
            section {
                h2 { "Not delivered yet" }
                dl.tiles {
                    @for tile in tiles {
                        div {
                            dt {
                                @if let Some(query) = tile.query {
                                    a href={ "/dashboard/emails?" (query) } { (tile.label) }
                                } @else {
                                    (tile.label)
                                }
                            }
                            dd.tile-value { (shown(tile)) }
                        }
                    }
                }
                p.soft.small { "Emails not yet delivered to any recipient, across all domains, counted up to 100. \
                    Deferred emails have been attempted and will be retried." }
            }
        }
    }
}
