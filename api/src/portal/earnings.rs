//! The page of earnings: the ledger, each line with why it is as large as it is and when it is the partner's.

use ::affiliate::refusal::Refusal;
use mail::affiliate::commission::{Commission, Level, Sold};
use mail::id::CommissionId;
use store::affiliate::commission::Filter;
use store::affiliate::listing::Wanted;

use super::frame::View;
use super::html::{Html, html, push};
use super::referrals::{ENTRIES, pages};
use super::words;
use crate::room::Room;

pub(super) async fn show(room: &Room, view: &View<'_>) -> Result<Html, Refusal> {
    let partner = &view.guest.partner;
    let before = view.asked.query.get("before").parse::<CommissionId>().ok();
    let wanted = Wanted { before: before.map(CommissionId::to_bytes), limit: ENTRIES, from: None };
    let filter = Filter { partner: Some(partner.id), ..Filter::default() };
    let page =
        store::affiliate::commission::list(room.hall.store(), partner.account, &filter, wanted).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.rows.is_empty() {
        content.raw("<p>Nothing yet. When somebody whom you brought pays, a line is written here.</p>");
    } else {
        content.put(&lines(&page.rows));
    }
    let next = page.next.map(|id| CommissionId::from_bytes(id).to_string());
    push!(content, [pages("earnings", before.is_some(), next.as_deref())] "</section>\n");
    Ok(view.page("earnings", "Earnings", &content))
}

/// A table of lines.
fn lines(lines: &[Commission]) -> Html {
    let mut table = html! {
        "<table class=\"list\"><thead><tr><th scope=\"col\">Day</th><th scope=\"col\">For what, and how it is reckoned</th>\
         <th scope=\"col\">Standing</th><th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>"
    };
    for line in lines {
        push!(
            table,
            "<tr><td>" [words::day(line.created_at)] "</td><td>" (what(line)) "<small>" (line.formula())
            "</small></td><td>" [words::state(line)] "</td><td class=\"num\"><strong>"
            (words::money(line.amount, line.currency)) "</strong></td></tr>"
        );
    }
    table.raw("</tbody></table>");
    table
}

/// What a line is for; the processor's own names are the program's.
pub(super) fn what(line: &Commission) -> &'static str {
    match line.sold() {
        None => "Somebody whom you brought",
        Some(Sold { level: Level::One | Level::OneFixed, .. }) => "A sale",
        Some(Sold { level: Level::Two, .. }) => "A sale of a partner whom you recruited",
    }
}
