//! Portal page "Overview": balances by currency, a chart of the last 90 days, and the primary link.

use ::affiliate::error::AffiliateError;
use ::affiliate::links;
use ::affiliate::portal::statistics::{ClickStatistics, PartnerBalances};
use mail::affiliate::balance::Balance;
use mail::affiliate::money::Currency;

use super::html::{Html, push};
use super::layout::PageContext;
use super::{chart, join, texts};
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<Html, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let service = &state.affiliate;
    let partner_balances = service.partner_balances(partner).await?;
    let all = service.list_links(partner.account, partner.id).await?;
    let clicks = service.click_statistics(partner, &all).await?;
    let mut content = balance_table(&partner_balances, program.settings.currency);
    for (currency, owed) in service.pending_corrections(partner, partner_balances.balances.keys().copied()).await? {
        push!(
            content,
            "<p class=\"note warn\">Your next payout is reduced by " (texts::format_money(owed, currency))
            ": customers were refunded after you were paid for their purchases.</p>\n"
        );
    }
    if let Some(link) = all.into_iter().find(|link| link.id == partner.primary_link) {
        let address = links::link_url(&program.settings.website_url, &link);
        push!(
            content,
            "<section class=\"card\"><h2>Your link</h2><label>Share this link\
             <input readonly value=\"" (address) "\"></label>"
        );
        if let Ok(campaign) = service.campaign(partner.account, partner.campaign).await {
            push!(content, "<p class=\"soft\">"(join::commission_offer(program, &campaign)));
            if let Some(rate) = partner.commission_override {
                let rate = f64::from(rate.get()) / 100.0;
                push!(content, " Your own rate of " (rate) " % applies instead.");
            }
            push!(
                content,
                " Commissions are confirmed after a " (campaign.terms.hold_days) "-day refund period.</p>"
            );
        }
        content.raw("</section>\n");
    }
    push!(
        content,
        "<section class=\"card\"><h2>The last 90 days</h2>"
        [earnings_chart(&partner_balances, &clicks, program.settings.currency)] "</section>\n"
    );
    Ok(view.render("home", &format!("Hello, {}", partner.name()), &content))
}

/// The balances by currency; zeroes in the program's currency if there are none.
fn balance_table(partner_balances: &PartnerBalances, default_currency: Currency) -> Html {
    let mut content = Html::new();
    let zero = [(default_currency, Balance::default())].into();
    let all = if partner_balances.balances.is_empty() { &zero } else { &partner_balances.balances };
    // The program's own currency first.
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|(currency, _)| (**currency != default_currency, **currency));
    for (currency, balance) in all {
        content.raw("<dl class=\"grid\">");
        for (label, amount) in [
            ("Pending", balance.pending),
            ("Earned", balance.earned),
            ("Being paid", balance.in_payout),
            ("Paid", balance.paid),
        ] {
            let amount = texts::format_money(amount, *currency);
            let (figure, code) = amount.rsplit_once(' ').unwrap_or((&amount, ""));
            push!(content, "<div><dt>" (label) "</dt><dd>" (figure) " <small>" (code) "</small></dd></div>");
        }
        content.raw("</dl>\n");
    }
    if partner_balances.is_cut {
        content.raw("<p class=\"soft\">Only your newest 20,000 commissions are counted.</p>\n");
    }
    content
}

/// The chart of the currency with the most days of earnings.
fn earnings_chart(partner_balances: &PartnerBalances, clicks: &ClickStatistics, default_currency: Currency) -> Html {
    let main = partner_balances.days.iter().max_by_key(|(_, days)| days.iter().filter(|sum| **sum > 0).count());
    let (currency, money) = main.map_or((default_currency, [].as_slice()), |(currency, days)| (*currency, days));
    chart::draw_chart(currency, money, &clicks.days)
}
