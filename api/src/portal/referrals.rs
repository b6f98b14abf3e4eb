//! The page of referrals: who was brought, as far as the program shares it, and what came of the partner's own tags.

use ::affiliate::portal::figures::ReferralStatistics;
use ::affiliate::refusal::AffiliateError;
use mail::affiliate::referral::Referral;
use mail::id::ReferralId;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::referral::ReferralFilter;

use super::frame::PageContext;
use super::html::{Html, html, push};
use super::words;
use crate::room::AppState;

/// Entries of a page.
pub(super) const ENTRIES: usize = 50;

pub(super) async fn show(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let office = &room.affiliate;
    let before = view.request.query.get("before").parse::<ReferralId>().ok();
    let wanted = ListPageRequest { before: before.map(ReferralId::to_bytes), limit: ENTRIES, from: None };
    let filter = ReferralFilter { partner: Some(partner.id), ..ReferralFilter::default() };
    let page = office.list_referrals(partner.account, &filter, wanted).await?;
    let mut content = html! { "<section class=\"card\">" };
    if page.rows.is_empty() {
        content.raw("<p>Nobody yet. Share your link, and who signs up or buys by it shows here.</p>");
    } else {
        content.raw(
            "<table class=\"list\"><thead><tr><th scope=\"col\">Who</th><th scope=\"col\">Tag</th>\
             <th scope=\"col\">Since</th><th scope=\"col\">Standing</th><th scope=\"col\" class=\"num\">Bought for</th>\
             </tr></thead><tbody>",
        );
        let shares = program.settings.share_customer_email;
        page.rows.iter().for_each(|referral| content.put(&referral_row(referral, shares)));
        content.raw("</tbody></table>");
    }
    let next = page.next.map(|id| ReferralId::from_bytes(id).to_string());
    push!(content, [page_links("referrals", before.is_some(), next.as_deref())] "</section>\n");
    if before.is_none() {
        let links = office.list_links(partner.account, partner.id).await?;
        let clicks = office.click_statistics(partner, &links).await?;
        content.put(&tag_table(&office.referral_statistics(partner).await?, &clicks.by_tag));
    }
    Ok(view.render("referrals", "Referrals", &content))
}

fn referral_row(referral: &Referral, shares: bool) -> Html {
    let who = match &referral.email {
        Some(email) if shares => email.to_string(),
        Some(email) => words::mask_email(email),
        None => "a customer".to_owned(),
    };
    let revenue = referral.currency.map(|currency| words::format_money(referral.revenue_cents, currency));
    html! {
        "<tr><td>" (who) "</td><td data-is=\"Tag\">" (referral.sub_id.as_deref().unwrap_or_default()) "</td><td>"
        [words::format_day(referral.created_at)] "</td><td>" [words::referral_status(referral)]
        "</td><td class=\"num\" data-is=\"Bought for\">" (revenue.unwrap_or_default()) "</td></tr>"
    }
}

/// The way to the other pages of a list.
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

/// What came of each tag.
fn tag_table(following: &ReferralStatistics, clicks: &std::collections::BTreeMap<String, u64>) -> Html {
    let mut names: Vec<&String> = following.by_tag.keys().chain(clicks.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        return html! {
            "<section class=\"card\"><h2>Your own tags</h2><p class=\"soft\">Put <code>&amp;sub_id=newsletter</code> behind \
             a link's address, and here you see what came of each.</p></section>\n"
        };
    }
    let mut table = html! {
        "<section class=\"card\"><h2>By your own tags</h2><table class=\"list\"><thead><tr><th scope=\"col\">Tag</th>\
         <th scope=\"col\" class=\"num\">Clicks (90 days)</th><th scope=\"col\" class=\"num\">People</th>\
         <th scope=\"col\" class=\"num\">Customers</th></tr></thead><tbody>"
    };
    for name in names {
        let brought = following.by_tag.get(name).copied().unwrap_or_default();
        let clicked = clicks.get(name).copied().unwrap_or_default();
        push!(
            table,
            "<tr><td>" (name) "</td><td class=\"num\" data-is=\"Clicks\">" (clicked)
            "</td><td class=\"num\" data-is=\"People\">" (brought.leads)
            "</td><td class=\"num\" data-is=\"Customers\">" (brought.customers) "</td></tr>"
        );
    }
    table.raw("</tbody></table>");
    if following.is_cut {
        table.raw("<p class=\"soft\">Not all are shown: there are very many.</p>");
    }
    table.raw("</section>\n");
    table
}
