//! Portal page "Referrals": the referred customers, masked unless the program shares addresses, and counts by
//! `sub_id`.

use ::affiliate::error::AffiliateError;
use ::affiliate::portal::statistics::ReferralStatistics;
use mail::affiliate::referral::Referral;
use mail::id::ReferralId;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::referral::ReferralFilter;

use super::html::{Html, html, push};
use super::layout::PageContext;
use super::texts;
use crate::state::AppState;

/// Rows of a page.
pub(super) const ENTRIES: usize = 50;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let service = &state.affiliate;
    let before = view.request.query.get("before").parse::<ReferralId>().ok();
    let page_request = ListPageRequest { before: before.map(ReferralId::to_bytes), limit: ENTRIES, from: None };
    let filter = ReferralFilter { partner: Some(partner.id), ..ReferralFilter::default() };
    let page = service.list_referrals(partner.account, &filter, page_request).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.rows.is_empty() {
        content.raw("<p>No referrals yet. Customers who sign up or buy through your link appear here.</p>");
    } else {
        content.raw(
            "<table class=\"list\"><thead><tr><th scope=\"col\">Customer</th><th scope=\"col\">Tag</th>\
             <th scope=\"col\">Since</th><th scope=\"col\">Status</th>\
             <th scope=\"col\" class=\"num\">Revenue</th></tr></thead><tbody>",
        );
        let shares = program.settings.share_customer_email;
        page.rows.iter().for_each(|referral| content.put(&referral_row(referral, shares)));
        content.raw("</tbody></table>");
    }
    let next = page.next.map(|id| ReferralId::from_bytes(id).to_string());
    push!(content, [page_links("referrals", before.is_some(), next.as_deref())] "</section>\n");
    if before.is_none() {
        let links = service.list_links(partner.account, partner.id).await?;
        let clicks = service.click_statistics(partner, &links).await?;
        content.put(&tag_table(&service.referral_statistics(partner).await?, &clicks.by_tag));
    }
    Ok(view.render("referrals", "Referrals", &content))
}

fn referral_row(referral: &Referral, shares: bool) -> Html {
    let person = match &referral.email {
        Some(email) if shares => email.to_string(),
        Some(email) => texts::mask_email(email),
        None => "a customer".to_owned(),
    };
    let revenue = referral.currency.map(|currency| texts::format_money(referral.revenue_cents, currency));
    html! {
        "<tr><td>" (person) "</td><td data-is=\"Tag\">" (referral.sub_id.as_deref().unwrap_or_default()) "</td><td>"
        [texts::format_day(referral.created_at)] "</td><td>" [texts::referral_status(referral)]
        "</td><td class=\"num\" data-is=\"Revenue\">" (revenue.unwrap_or_default()) "</td></tr>"
    }
}

/// Links to the newest and to the next page of a list.
pub(super) fn page_links(name: &str, is_further: bool, next: Option<&str>) -> Html {
    let mut links = Html::new();
    if !is_further && next.is_none() {
        return links;
    }
    links.raw("<nav class=\"pages\" aria-label=\"Pages\">");
    if is_further {
        push!(links, "<a href=\"" (name) "\">Newest</a>");
    }
    if let Some(next) = next {
        push!(links, "<a href=\"" (name) "?before=" (next) "\">Older</a>");
    }
    links.raw("</nav>");
    links
}

/// Clicks, people and customers by `sub_id`.
fn tag_table(statistics: &ReferralStatistics, clicks: &std::collections::BTreeMap<String, u64>) -> Html {
    let mut names: Vec<&String> = statistics.by_tag.keys().chain(clicks.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        return html! {
            "<section class=\"card\"><h2>Your tags</h2><p class=\"soft\">Append <code>&amp;sub_id=newsletter</code> \
             to a link to see its results by tag here.</p></section>\n"
        };
    }
    let mut table = html! {
        "<section class=\"card\"><h2>By tag</h2><table class=\"list\"><thead><tr><th scope=\"col\">Tag</th>\
         <th scope=\"col\" class=\"num\">Clicks (90 days)</th><th scope=\"col\" class=\"num\">People</th>\
         <th scope=\"col\" class=\"num\">Customers</th></tr></thead><tbody>"
    };
    for name in names {
        let earnings = statistics.by_tag.get(name).copied().unwrap_or_default();
        let clicked = clicks.get(name).copied().unwrap_or_default();
        push!(
            table,
            "<tr><td>" (name) "</td><td class=\"num\" data-is=\"Clicks\">" (clicked)
            "</td><td class=\"num\" data-is=\"People\">" (earnings.leads)
            "</td><td class=\"num\" data-is=\"Customers\">" (earnings.customers) "</td></tr>"
        );
    }
    table.raw("</tbody></table>");
    if statistics.is_cut {
        table.raw("<p class=\"soft\">Older referrals are not counted.</p>");
    }
    table.raw("</section>\n");
    table
}
