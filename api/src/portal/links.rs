//! Portal page "Links": the partner's links with their counts, and the recruiting link.

use ::affiliate::error::AffiliateError;
use ::affiliate::links;
use mail::affiliate::partner::{LINKS_MAX, PartnerLink};
use mail::affiliate::referral::ReferralCounts;

use super::html::{Html, html, push};
use super::layout::PageContext;
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let service = &state.affiliate;
    let all = service.list_links(partner.account, partner.id).await?;
    let referrals = service.referral_counts(partner).await?;
    let clicks = service.click_statistics(partner, &all).await?;
    let mut content = Html::new();
    if view.can_edit() && all.len() < LINKS_MAX {
        content.put(&add_link_form(view));
    }
    for link in &all {
        let is_primary = link.id == partner.primary_link;
        let address = links::link_url(&program.settings.website_url, link);
        push!(content, "<section class=\"card\"><h2>"(link.label.as_deref().unwrap_or(link.token.as_str())));
        if is_primary {
            content.raw(" <span class=\"tag\">your main link</span>");
        }
        push!(content, "</h2><label>Share this link<input readonly value=\"" (address) "\"></label>");
        let count = clicks.by_link.get(&link.id).copied().unwrap_or_default();
        let link_referrals = referrals.links.get(&link.id).copied().unwrap_or_default();
        push!(content, [link_counts(count, link_referrals)]);
        if view.can_edit() {
            content.put(&edit_link_form(view, link));
        }
        content.raw("</section>\n");
    }
    push!(content, "<section class=\"card\"><h2>Total</h2>" [link_counts(clicks.all, referrals.total())]
        "</section>\n" [recruiting_link(state, view, &all).await?]);
    Ok(view.render("links", "Links", &content))
}

fn link_counts(clicks: u64, ReferralCounts { leads, customers }: ReferralCounts) -> Html {
    html! { "<p>" (clicks) " clicks · " (leads) " referrals · " (customers) " customers</p>" }
}

/// The input fields of a link.
fn link_fields(view: &PageContext<'_>, form: &str, link: Option<&PartnerLink>) -> Html {
    let now = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let token = view.field_value(form, "token", &now(link.map(|link| link.token.as_str())));
    let label = view.field_value(form, "label", &now(link.and_then(|link| link.label.as_deref())));
    let to = view.field_value(form, "destination_url", &now(link.and_then(|link| link.destination_url.as_deref())));
    html! {
        "<div class=\"two\"><label>Name in the address<input name=\"token\" required minlength=\"2\" maxlength=\"40\" \
         pattern=\"[A-Za-z0-9_\\-]+\" autocapitalize=\"none\" spellcheck=\"false\" value=\"" (token) "\">\
         <small>2 to 40 letters, digits, dashes and underscores</small></label>\
         <label>Your note (nobody else sees it)<input name=\"label\" maxlength=\"200\" value=\"" (label) "\"></label></div>\
         <label>Destination page<input name=\"destination_url\" maxlength=\"2000\" placeholder=\"/pricing\" value=\""
        (to) "\"><small>A path on " (view.session.program.settings.website_url)
        "; default: the home page</small></label>"
    }
}

fn add_link_form(view: &PageContext<'_>) -> Html {
    let open = if view.has_error("add-link") { " open" } else { "" };
    html! {
        "<details class=\"card\"" (open) "><summary>Add a link</summary>\
         <form method=\"post\" action=\"add-link\">" [view.csrf_field()] [link_fields(view, "add-link", None)]
        "<button type=\"submit\">Add the link</button></form></details>\n"
    }
}

fn edit_link_form(view: &PageContext<'_>, link: &PartnerLink) -> Html {
    let has_error = view.has_error("change-link") && view.request.form.get("id") == link.id.to_string();
    let (open, form) = if has_error { (" open", "change-link") } else { ("", "") };
    html! {
        "<details" (open) "><summary>Edit</summary><form method=\"post\" action=\"change-link\">" [view.csrf_field()]
        "<input type=\"hidden\" name=\"id\" value=\"" (link.id) "\">" [link_fields(view, form, Some(link))]
        "<p class=\"soft\">If you change the name, the old link stops working.</p>\
         <button type=\"submit\">Save</button></form></details>"
    }
}

/// The recruiting link; empty if the campaign has no second tier or cannot be joined.
async fn recruiting_link(
    state: &AppState,
    view: &PageContext<'_>,
    all: &[PartnerLink],
) -> Result<Html, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let campaign = match state.affiliate.campaign(partner.account, partner.campaign).await {
        Ok(campaign) => campaign,
        Err(AffiliateError::NotFound(_)) => return Ok(Html::new()),
        Err(refusal) => return Err(refusal),
    };
    let share = campaign.terms.second_tier.get();
    let link = all.iter().find(|link| link.id == partner.primary_link);
    let Some(link) = link else { return Ok(Html::new()) };
    let Some(address) = state.affiliate.recruiting_address(program, link).await? else {
        return Ok(Html::new());
    };
    if share == 0 || state.affiliate.campaign_to_join(program, None).await?.is_none() {
        return Ok(Html::new());
    }
    let share = f64::from(share) / 100.0;
    Ok(html! {
        "<section class=\"card\"><h2>Recruit partners</h2><p>Partners who join through this link earn their own \
         commission, and you earn " (share) " % of their sales in addition.</p>\
         <label>Share this link<input readonly value=\"" (address) "\"></label></section>\n"
    })
}
