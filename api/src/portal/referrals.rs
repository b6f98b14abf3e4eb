//! Portal page "Referrals": the referred customers, masked unless the program shares addresses, and counts by
//! `sub_id`.

use std::collections::BTreeMap;

use ::affiliate::error::AffiliateError;
use ::affiliate::portal::statistics::ReferralStatistics;
use html::document::RenderedPage;
use html::empty::EmptyState;
use html::fragment::Fragment;
use html::table::{Row, Table};
use hypertext::prelude::*;
use model::affiliate::referral::Referral;
use model::id::ReferralId;
use store::affiliate::listing::ListPageRequest;
use store::affiliate::referral::ReferralFilter;

use super::layout::PageContext;
use super::texts;
use crate::state::AppState;

/// Rows of a page.
pub(super) const ENTRIES: usize = 50;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<RenderedPage, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let service = &state.affiliate;
    let before = view.request.query.get("before").parse::<ReferralId>().ok();
    let page_request = ListPageRequest { before: before.map(ReferralId::to_bytes), limit: ENTRIES, from: None };
    let filter = ReferralFilter { partner: Some(partner.id), ..ReferralFilter::default() };
    let page = service.ledger.list_referrals(partner.account, &filter, page_request).await?;
    let next = page.next.map(|id| ReferralId::from_bytes(id).to_string());
    let tags = if before.is_none() {
        let links = service.context.list_links(partner.account, partner.id).await?;
        let clicks = service.ledger.click_statistics(partner, &links).await?;
        tag_section(&service.ledger.referral_statistics(partner).await?, &clicks.by_tag)
    } else {
        Fragment::default()
    };
    let content = maud! {
        @if page.rows.is_empty() {
            (EmptyState {
                title: "No referrals yet",
                text: "Customers who sign up or buy through your link appear here.",
                action: None,
            })
        } @else {
            (referral_table(&page.rows, program.settings.share_customer_email))
        }
        (page_links("referrals", before.is_some(), next.as_deref()))
        (tags)
    };
    Ok(view.render("referrals", "Referrals", content))
}

fn referral_table(referrals: &[Referral], shares: bool) -> Table {
    let columns = ["Customer", "Tag", "Since", "Status", "Revenue"];
    let mut table = Table::new("Your referrals", &columns).numbers(&["Revenue"]);
    for referral in referrals {
        let person = match &referral.email {
            Some(email) if shares => email.to_string(),
            Some(email) => texts::mask_email(email),
            None => "a customer".to_owned(),
        };
        let revenue = referral.currency.map(|currency| texts::format_money(referral.revenue_cents, currency));
        table.push(
            Row::new()
                .cell(maud! { (person) })
                .cell(texts::text_or_dash(referral.sub_id.as_deref()))
                .cell(texts::format_day(referral.created_at))
                .cell(texts::referral_status(referral))
                .cell(maud! { span.nowrap { (texts::text_or_dash(revenue.as_deref())) } }),
        );
    }
    table
}

/// Links to the newest and to the next page of a list.
pub(super) fn page_links<'a>(name: &'static str, is_further: bool, next: Option<&'a str>) -> impl Renderable + use<'a> {
    maud! {
        @if is_further || next.is_some() {
            nav.pager aria-label="Pages" {
                @if is_further { a.button href=(name) { "Newest" } }
                @if let Some(next) = next { a.button href={ (name) "?before=" (next) } rel="next" { "Older" } }
            }
        }
    }
}

/// Clicks, people and customers by `sub_id`.
fn tag_section(statistics: &ReferralStatistics, clicks: &BTreeMap<String, u64>) -> Fragment {
    let mut names: Vec<&String> = statistics.by_tag.keys().chain(clicks.keys()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty());
    if names.is_empty() {
        return Fragment::new(maud! {
            section.card {
                h2 { "Your tags" }
                p.soft { "Append " code { "&sub_id=newsletter" } " to a link to see its results by tag here." }
            }
        });
    }
    let columns = ["Tag", "Clicks (90 days)", "People", "Customers"];
    let mut table = Table::new("Results by tag", &columns).numbers(&columns[1..]);
    for name in names {
        let earnings = statistics.by_tag.get(name).copied().unwrap_or_default();
        let clicked = clicks.get(name).copied().unwrap_or_default();
        table.push(
            Row::new()
                .cell(maud! { (name) })
                .cell(maud! { (clicked) })
                .cell(maud! { (earnings.leads) })
                .cell(maud! { (earnings.customers) }),
        );
    }
    Fragment::new(maud! {
        section {
            h2 { "By tag" }
            (table)
            @if statistics.is_cut { p.soft.small { "Older referrals are not counted." } }
        }
    })
}
