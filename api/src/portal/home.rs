//! The first page: what there is in each currency, what the last 90 days brought, and the link to share.

use ::affiliate::links;
use ::affiliate::portal::figures::{ClickStatistics, PartnerBalances};
use ::affiliate::refusal::AffiliateError;
use mail::affiliate::balance::Balance;
use mail::affiliate::money::Currency;

use super::frame::PageContext;
use super::html::{Html, push};
use super::{join, picture, words};
use crate::room::AppState;

pub(super) async fn show(room: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let office = &room.affiliate;
    let purse = office.partner_balances(partner).await?;
    let all = office.list_links(partner.account, partner.id).await?;
    let clicks = office.click_statistics(partner, &all).await?;
    let mut content = balance_table(&purse, program.settings.currency);
    for (currency, owed) in office.pending_corrections(partner, purse.balances.keys().copied()).await? {
        push!(
            content,
            "<p class=\"note warn\">Your next payout is reckoned with " (words::format_money(owed, currency)) ": customers got \
             money back after you were paid for it.</p>\n"
        );
    }
    if let Some(link) = all.into_iter().find(|link| link.id == partner.primary_link) {
        let address = links::link_url(&program.settings.website_url, &link);
        push!(
            content,
            "<section class=\"card\"><h2>Your link</h2><label>Share this address\
             <input readonly value=\"" (address) "\"></label>"
        );
        if let Ok(campaign) = office.campaign(partner.account, partner.campaign).await {
            push!(content, "<p class=\"soft\">"(join::commission_offer(program, &campaign)));
            if let Some(own) = partner.commission_override {
                let own = f64::from(own.get()) / 100.0;
                push!(content, " Your own rate is " (own) " %, in its place.");
            }
            push!(
                content,
                " What you earn is yours after " (campaign.terms.hold_days) " days, when the customer can return \
                 nothing any more.</p>"
            );
        }
        content.raw("</section>\n");
    }
    push!(
        content,
        "<section class=\"card\"><h2>The last 90 days</h2>" [earnings_chart(&purse, &clicks, program.settings.currency)]
        "</section>\n"
    );
    Ok(view.render("home", &format!("Hello, {}", partner.name()), &content))
}

/// What there is: in the program's currency if in none.
fn balance_table(purse: &PartnerBalances, own: Currency) -> Html {
    let mut content = Html::new();
    let nothing = [(own, Balance::default())].into();
    let all = if purse.balances.is_empty() { &nothing } else { &purse.balances };
    // The program's own first.
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|(currency, _)| (**currency != own, **currency));
    for (currency, balance) in all {
        content.raw("<dl class=\"grid\">");
        for (label, amount) in [
            ("Pending", balance.pending),
            ("Earned", balance.earned),
            ("In a payout", balance.in_payout),
            ("Paid", balance.paid),
        ] {
            let amount = words::format_money(amount, *currency);
            let (figure, code) = amount.rsplit_once(' ').unwrap_or((&amount, ""));
            push!(content, "<div><dt>" (label) "</dt><dd>" (figure) " <small>" (code) "</small></dd></div>");
        }
        content.raw("</dl>\n");
    }
    if purse.is_cut {
        content.raw("<p class=\"soft\">Only your newest 20,000 commissions are in the picture.</p>\n");
    }
    content
}

/// The picture of the currency that most came in.
fn earnings_chart(purse: &PartnerBalances, clicks: &ClickStatistics, own: Currency) -> Html {
    let most = purse.days.iter().max_by_key(|(_, days)| days.iter().filter(|sum| **sum > 0).count());
    let (currency, money) = most.map_or((own, [].as_slice()), |(currency, days)| (*currency, days));
    picture::draw_chart(currency, money, &clicks.days)
}
