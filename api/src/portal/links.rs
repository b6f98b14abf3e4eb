//! Portal page "Links": the partner's links with their counts, and the recruiting link.

use ::affiliate::error::AffiliateError;
use ::affiliate::partners::link_url::link_url;
use html::badge::{Badge, Tone};
use html::document::RenderedPage;
use html::fragment::Fragment;
use hypertext::prelude::*;
use model::affiliate::partner::{LINKS_MAX, PartnerLink};
use model::affiliate::referral::ReferralCounts;

use super::field::{TextField, shared_address};
use super::layout::{PageContext, submit_button};
use super::texts;
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<RenderedPage, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let service = &state.affiliate;
    let all = service.context.list_links(partner.account, partner.id).await?;
    let referrals = service.ledger.referral_counts((partner.account, partner.id)).await?;
    let clicks = service.ledger.click_statistics(partner, &all).await?;
    let recruiting = recruiting_link(state, view, &all).await?;
    let content = maud! {
        @if view.can_edit() && all.len() < LINKS_MAX { (add_link_form(view)) }
        @for link in &all {
            @let id = link.id.to_string();
            @let address = link_url(&program.settings.website_url, link);
            section.card {
                div.head {
                    h2 { (link.label.as_deref().unwrap_or(link.token.as_str())) }
                    @if link.id == partner.primary_link { (Badge::new("your main link", Tone::Neutral)) }
                }
                (shared_address(&id, &address))
                (link_counts(
                    clicks.by_link.get(&link.id).copied().unwrap_or_default(),
                    referrals.links.get(&link.id).copied().unwrap_or_default(),
                ))
                @if view.can_edit() { (edit_link_form(view, link)) }
            }
        }
        section.card { h2 { "Total" } (link_counts(clicks.all, referrals.total())) }
        (recruiting)
    };
    Ok(view.render("links", "Links", content))
}

fn link_counts(clicks: u64, ReferralCounts { leads, customers }: ReferralCounts) -> impl Renderable {
    let counts = [(clicks, "click"), (leads, "referral"), (customers, "customer")];
    let text = counts.map(|(number, noun)| texts::format_count(number, noun)).join(" · ");
    maud! { p { (text) } }
}

/// The input fields of a link. `id` is unique on the page.
fn link_fields(view: &PageContext<'_>, form: &str, id: &str, link: Option<&PartnerLink>) -> Fragment {
    let value = |name, now: Option<&str>| view.field_value(form, name, now.unwrap_or_default());
    let token = value("token", link.map(|link| link.token.as_str()));
    let label = value("label", link.and_then(|link| link.label.as_deref()));
    let to = value("destination_url", link.and_then(|link| link.destination_url.as_deref()));
    let ids = ["token", "label", "to"].map(|name| format!("{id}-{name}"));
    let [token_id, label_id, to_id] = &ids;
    let help = format!("A path on {}; default: the home page", view.session.program.settings.website_url);
    let token = TextField {
        help: Some("From 2 to 40 letters, digits, dashes and underscores"),
        chars_max: 40,
        is_required: true,
        is_token: true,
        ..TextField::new(token_id, "token", "Name in the URL", &token)
    };
    let label =
        TextField { help: Some("Nobody else sees it"), ..TextField::new(label_id, "label", "Your note", &label) };
    let to = TextField {
        help: Some(&help),
        placeholder: Some("/pricing"),
        chars_max: 2_000,
        ..TextField::new(to_id, "destination_url", "Destination page", &to)
    };
    Fragment::new(maud! { div.columns { (token) (label) } (to) })
}

fn add_link_form<'a>(view: &'a PageContext<'a>) -> impl Renderable + use<'a> {
    let fields = link_fields(view, "add-link", "new", None);
    maud! {
        details.card open[view.has_error("add-link")] {
            summary { "Add a link" }
            form.form.wide method="post" action="add-link" {
                (view.csrf_field())
                (fields)
                (submit_button("Add the link"))
            }
        }
    }
}

fn edit_link_form(view: &PageContext<'_>, link: &PartnerLink) -> Fragment {
    let id = link.id.to_string();
    let has_error = view.has_error("change-link") && view.request.form.get("id") == id;
    let fields = link_fields(view, if has_error { "change-link" } else { "" }, &id, Some(link));
    Fragment::new(maud! {
        details open[has_error] {
            summary { "Edit" }
            form.form.wide method="post" action="change-link" {
                (view.csrf_field())
                input type="hidden" name="id" value=(id);
                (fields)
                p.soft.small { "If you change the name, the old link stops working." }
                (submit_button("Save"))
            }
        }
    })
}

/// The recruiting link; empty if the campaign has no second tier or cannot be joined.
async fn recruiting_link(
    state: &AppState,
    view: &PageContext<'_>,
    all: &[PartnerLink],
) -> Result<Fragment, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let campaign = match state.affiliate.context.get_campaign(partner.account, partner.campaign).await {
        Ok(campaign) => campaign,
        Err(AffiliateError::NotFound(_)) => return Ok(Fragment::default()),
        Err(refusal) => return Err(refusal),
    };
    let share = campaign.terms.second_tier.get();
    let link = all.iter().find(|link| link.id == partner.primary_link);
    let Some(link) = link else { return Ok(Fragment::default()) };
    let Some(address) = state.affiliate.hosts.recruiting_address(program, link).await? else {
        return Ok(Fragment::default());
    };
    if share == 0 || state.affiliate.context.campaign_to_join(program, None).await?.is_none() {
        return Ok(Fragment::default());
    }
    let share = (f64::from(share) / 100.0).to_string();
    Ok(Fragment::new(maud! {
        section.card {
            h2 { "Recruit partners" }
            p {
                "Partners who join through this link earn their own commission, and you earn " (share)
                " % of their sales in addition."
            }
            (shared_address("recruiting", &address))
        }
    }))
}
