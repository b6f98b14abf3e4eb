//! The pages of a signed-in partner, by name.

use super::earnings;
use super::home;
use super::html::Html;
use super::layout::PageContext;
use super::links;
use super::payouts;
use super::referrals;
use super::settings;
use crate::affiliate::refusal::refusal_problem;
use crate::problem::Problem;
use crate::state::AppState;

/// Renders a page of a signed-in partner.
pub(super) async fn render_page(room: &AppState, name: &str, view: &PageContext<'_>) -> Result<Html, Problem> {
    let rendered = match name {
        "links" => links::show(room, view).await,
        "referrals" => referrals::show(room, view).await,
        "earnings" => earnings::show(room, view).await,
        "payouts" => payouts::show(room, view).await,
        "settings" => settings::show(room, view).await,
        _ => home::show(room, view).await,
    };
    rendered.map_err(|refusal| refusal_problem(room, refusal))
}
