//! The deliveries of an endpoint, with their filters.

use super::object::{Delivery, Webhook};
use super::{delivery_path, event_choices, webhook_path};
use crate::dashboard::kit::filter::{or_refused, refused_filter};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails::day_start;

/// A page of the list.
pub(super) struct Deliveries {
    pub call: Call,
    list: List<Delivery>,
    refused: Option<Failure>,
    filters: [Filter; 4],
}

impl Deliveries {
    pub(super) async fn read(context: &Context<'_>, webhook: &str) -> Result<Self, Failure> {
        let query = context.query();
        let mut call = Call::new("list_webhook_deliveries").id(webhook);
        for name in ["status", "type", "cursor"] {
            call = call.query(name, query.get(name));
        }
        call = call.query("created_after", day_start(query.get("after"), 0));
        call = call.query("created_before", day_start(query.get("before"), 1));
        let (list, refused) = or_refused(context.read_list::<Delivery>(&call).await)?;
        let filters = [
            Filter::words("status", "Status", &["pending", "delivered", "failed"]),
            event_choices::filter("type"),
            Filter::date("after", "From date"),
            Filter::date("before", "To date"),
        ];
        Ok(Self { call, list, refused, filters })
    }

    pub(super) fn section<'s>(&'s self, context: &'s Context<'s>, webhook: &'s Webhook) -> DeliverySection<'s> {
        DeliverySection { deliveries: self, context, webhook }
    }
}

/// The list below its heading.
pub(super) struct DeliverySection<'s> {
    deliveries: &'s Deliveries,
    context: &'s Context<'s>,
    webhook: &'s Webhook,
}

impl DeliverySection<'_> {
    fn table(&self) -> Table {
        let mut table =
            Table::new("Deliveries", &["Event", "Status", "Attempts", "Last response", "Next attempt", "Created"])
                .numbers(&["Attempts"]);
        for delivery in &self.deliveries.list.entries {
            let answer = delivery.response_status.map_or_else(|| "–".to_owned(), |status| status.to_string());
            let next = match delivery.status.as_str() {
                "pending" => delivery.next_try(self.context.now()),
                _ => "–".to_owned(),
            };
            table.push(
                Row::new()
                    .link(delivery_path(&self.webhook.id, &delivery.id), &delivery.r#type)
                    .cell(delivery.badge())
                    .cell(delivery.attempts_count)
                    .cell(answer)
                    .cell(next)
                    .cell(time_or_dash(Some(&delivery.created_at))),
            );
        }
        table
    }

    /// No deliveries: because there are none, or because the filters exclude them.
    fn empty(&self, is_filtered: bool) -> EmptyState<'static> {
        if is_filtered {
            EmptyState {
                title: "No deliveries match the filters",
                text: "Deliveries are kept for 30 days.",
                action: None,
            }
        } else {
            EmptyState {
                title: "No deliveries yet",
                text: "Events from now on are listed here with each attempt. Send a test to see one.",
                action: None,
            }
        }
    }
}

impl Renderable for DeliverySection<'_> {
    fn render_to(&self, buffer: &mut Buffer) {
        let Self { deliveries, context, webhook } = *self;
        let bar = FilterBar { context, filters: &deliveries.filters };
        let table = self.table();
        let is_filtered = bar.is_active() || !context.query().get("cursor").is_empty();
        let can_replay = webhook.enabled && context.allows("replay_webhook_deliveries");
        maud_borrow! {
            section {
                div.section-head {
                    h2 { "Deliveries" }
                    @if can_replay { a href={ (webhook_path(&webhook.id)) "/replay" } { "Replay past deliveries" } }
                }
                (bar)
                div data-fragment="list" {
                    @if let Some(refused) = &deliveries.refused {
                        (refused_filter(refused))
                    } @else {
                        (ListView { context, table: &table, empty: self.empty(is_filtered), next_cursor: deliveries.list.next_cursor.as_deref() })
                    }
                }
            }
        }
        .render_to(buffer);
    }
}
