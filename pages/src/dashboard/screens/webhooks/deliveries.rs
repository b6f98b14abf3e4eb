//! The deliveries of an endpoint, with their filters.

use jiff::{SignedDuration, Timestamp};

use super::object::{Delivery, Webhook};
use super::{delivery_path, event_choices, webhook_path};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::day_start;

/// Deliveries are kept for this time.
const DELIVERY_RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

/// A page of the list.
pub(super) struct Deliveries {
    pub call: Call,
    list: List<Delivery>,
    filters: [Filter; 4],
}

impl Deliveries {
    pub(super) async fn read(context: &Context<'_>, webhook: &str) -> Result<Self, Failure> {
        let query = context.query();
        let mut call = Call::new("list_webhook_deliveries").id(webhook).filters(query, &["status", "type", "cursor"]);
        call = call.query("created_after", day_start(query.get("after"), 0));
        call = call.query("created_before", day_start(query.get("before"), 1));
        let list = context.read_filtered::<Delivery>("deliveries", &call).await?;
        let filters = [
            Filter::words("status", "Status", &["pending", "delivered", "failed"]),
            event_choices::filter("type"),
            Filter::date("after", "From date"),
            Filter::date("before", "To date"),
        ];
        Ok(Self { call, list, filters })
    }

    /// The list below its heading.
    pub(super) fn section(&self, context: &Context<'_>, webhook: &Webhook) -> Fragment {
        let bar = FilterBar { context, filters: &self.filters };
        let table = self.table(context, webhook);
        let is_filtered = bar.is_active() || !context.query().get("cursor").is_empty();
        let can_replay = webhook.enabled && context.allows("replay_webhook_deliveries");
        Fragment::new(maud_borrow! {
            section {
                div.section-head {
                    h2 { "Deliveries" }
                    @if can_replay { a href={ (webhook_path(&webhook.id)) "/replay" } { "Replay past deliveries" } }
                }
                (bar.with_list(&self.list, &table, no_deliveries(context, webhook, is_filtered)))
            }
        })
    }

    fn table(&self, context: &Context<'_>, webhook: &Webhook) -> Table {
        Table::of("Deliveries", &self.list.entries)
            .column("Event", |delivery| link(delivery_path(&webhook.id, &delivery.id), &delivery.r#type))
            .column("Status", |delivery| delivery.badge())
            .number("Attempts", |delivery| delivery.attempts_count)
            .column("Last response", |delivery| {
                delivery.response_status.map_or_else(|| "–".to_owned(), |status| status.to_string())
            })
            .column("Next attempt", |delivery| match delivery.status.as_str() {
                "pending" => delivery.next_try(context.now()),
                _ => "–".to_owned(),
            })
            .column("Created", |delivery| time_or_dash(Some(&delivery.created_at)))
            .into()
    }
}

/// No deliveries: because there are none, or because the filters exclude them.
fn no_deliveries(context: &Context<'_>, webhook: &Webhook, is_filtered: bool) -> EmptyState<'static> {
    if is_filtered {
        return EmptyState {
            title: "No deliveries match the filters",
            text: "Deliveries are kept for 30 days.",
            action: None,
        };
    }
    let created = webhook.created_at.parse::<Timestamp>();
    let is_old = created.is_ok_and(|at| context.now().duration_since(at) > DELIVERY_RETENTION);
    EmptyState {
        title: if is_old { "No deliveries in the last 30 days" } else { "No deliveries yet" },
        text: "Events from now on are listed here with each attempt. Send a test to see one.",
        action: None,
    }
}
