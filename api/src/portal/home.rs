//! Portal page "Overview": balances by currency, the primary link, and charts of the last 90 days.

use ::affiliate::error::AffiliateError;
use ::affiliate::partners::link_url::link_url;
use ::affiliate::portal::statistics::{ClickStatistics, PartnerBalances};
use html::document::RenderedPage;
use html::fragment::Fragment;
use hypertext::prelude::*;
use model::affiliate::balance::Balance;
use model::affiliate::money::Currency;
use model::affiliate::partner::PartnerLink;

use super::chart::PartnerActivity;
use super::field::shared_address;
use super::layout::PageContext;
use super::{join, texts};
use crate::state::AppState;

pub(super) async fn show(state: &AppState, view: &PageContext<'_>) -> Result<RenderedPage, AffiliateError> {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let service = &state.affiliate;
    let partner_balances = service.ledger.partner_balances(partner).await?;
    let all = service.context.list_links(partner.account, partner.id).await?;
    let clicks = service.ledger.click_statistics(partner, &all).await?;
    let corrections = service.ledger.pending_corrections(partner, partner_balances.balances.keys().copied()).await?;
    let link = match all.into_iter().find(|link| link.id == partner.primary_link) {
        Some(link) => link_card(state, view, &link).await,
        None => Fragment::default(),
    };
    let tiles = balance_tiles(&partner_balances, program.settings.currency);
    let activity = activity(state, &partner_balances, &clicks, program.settings.currency);
    let content = maud! {
        (tiles)
        @for (currency, sum) in &corrections { (correction_notice(*sum, *currency)) }
        (link)
        @if activity.is_empty() {
            div.empty {
                p.empty-title { "Nothing in the last 90 days" }
                p { "Clicks on your links and what you earn from them are shown here, day by day." }
            }
        } @else {
            (activity.charts())
        }
    };
    Ok(view.render("home", &format!("Hello, {}", partner.name()), content))
}

/// A notice about refunds after a payout (`sum` is negative), or about amounts that were too low (positive).
fn correction_notice(sum: i64, currency: Currency) -> impl Renderable {
    let amount = texts::format_money(sum.saturating_abs(), currency);
    maud! {
        @if sum < 0 {
            div.notice.warning {
                p {
                    "Your next payout is reduced by " (amount)
                    ": customers were refunded after you were paid for their purchases."
                }
            }
        } @else {
            div.notice {
                p {
                    "Your next payout is raised by " (amount)
                    ": an earlier amount was too low, because a refund failed, a dispute was won or a payout failed."
                }
            }
        }
    }
}

/// The partner's main link, and what it earns.
async fn link_card(state: &AppState, view: &PageContext<'_>, link: &PartnerLink) -> Fragment {
    let (partner, program) = (&view.session.partner, &view.session.program);
    let address = link_url(&program.settings.website_url, link);
    let campaign = state.affiliate.context.get_campaign(partner.account, partner.campaign).await.ok();
    let rate = partner.commission_override.map(|rate| f64::from(rate.get()) / 100.0);
    Fragment::new(maud! {
        section.card {
            h2 { "Your link" }
            (shared_address("link", &address))
            @if let Some(campaign) = &campaign {
                p.soft.small {
                    (join::commission_offer(program, campaign))
                    @if let Some(rate) = rate { " Your own rate of " (rate.to_string()) " % applies instead." }
                    " " (hold_text(campaign.terms.hold_days))
                }
            }
        }
    })
}

/// When commissions are earned.
fn hold_text(days: u16) -> String {
    match days {
        0 => "Commissions are earned at once.".to_owned(),
        days => format!("Commissions are earned after a {days}-day refund period."),
    }
}

/// The balances by currency; zeroes in the program's currency if there are none.
fn balance_tiles(partner_balances: &PartnerBalances, default_currency: Currency) -> Fragment {
    let zero = [(default_currency, Balance::default())].into();
    let all = if partner_balances.balances.is_empty() { &zero } else { &partner_balances.balances };
    // The program's own currency first.
    let mut all: Vec<_> = all.iter().collect();
    all.sort_by_key(|(currency, _)| (**currency != default_currency, **currency));
    Fragment::new(maud! {
        @for (currency, balance) in &all {
            dl.tiles {
                @for (label, amount) in [
                    ("Pending", balance.pending),
                    ("Earned", balance.earned),
                    ("Being paid", balance.in_payout),
                    ("Paid", balance.paid),
                ] {
                    @let amount = texts::format_money(amount, **currency);
                    @let (figure, code) = amount.rsplit_once(' ').unwrap_or((&amount, ""));
                    div { dt { (label) } dd.tile-value { (figure) " " small { (code) } } }
                }
            }
        }
        @if partner_balances.is_cut { p.soft.small { "Only your newest 20,000 commissions are counted." } }
    })
}

/// Clicks, and the earnings of the currency with the most days of earnings.
fn activity<'a>(
    state: &AppState,
    partner_balances: &'a PartnerBalances,
    clicks: &'a ClickStatistics,
    default_currency: Currency,
) -> PartnerActivity<'a> {
    let main = partner_balances.days.iter().max_by_key(|(_, days)| days.iter().filter(|sum| **sum > 0).count());
    let (currency, money) = main.map_or((default_currency, [].as_slice()), |(currency, days)| (*currency, days));
    PartnerActivity { currency, money, clicks: &clicks.days, now: state.services.clock.now() }
}
