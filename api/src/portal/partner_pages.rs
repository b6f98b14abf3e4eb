//! The pages of a signed-in partner, by name.

use html::document::RenderedPage;

use super::layout::PageContext;
use super::{earnings, home, links, payouts, referrals, settings};
use crate::prelude::*;

/// Renders a page of a signed-in partner.
pub(super) async fn render_page(state: &AppState, name: &str, view: &PageContext<'_>) -> Result<RenderedPage> {
    let rendered = match name {
        "links" => links::show(state, view).await,
        "referrals" => referrals::show(state, view).await,
        "earnings" => earnings::show(state, view).await,
        "payouts" => payouts::show(state, view).await,
        "settings" => settings::show(state, view).await,
        _ => home::show(state, view).await,
    };
    rendered.or_problem(state)
}
