//! The program of a page without a session.

use model::affiliate::program::AffiliateProgram;

use super::layout;
use super::page::PortalPage;
use super::request::PortalRequest;
use crate::prelude::*;

/// The program of a page without a session: by the publishable key in the URL, else by the host.
pub(super) async fn find_program(
    state: &AppState,
    request: &PortalRequest,
    key: &str,
) -> Result<Option<AffiliateProgram>> {
    if !key.is_empty() {
        return state.affiliate.context.find_portal_by_key(key).await.or_problem(state);
    }
    match &request.host {
        Some(host) => state.affiliate.hosts.find_program_by_host(host).await.or_problem(state),
        None => Ok(None),
    }
}

/// The page for a URL that names no program.
pub(super) fn no_program_page(key: &str) -> PortalPage {
    let text = if key.is_empty() {
        "The address has no program key (?key=pk_…). Open the page from the product that you are a partner of, or \
         from one of its emails."
    } else {
        "No partner program has the key in this address."
    };
    PortalPage::new(StatusCode::NOT_FOUND, layout::message_page("", "Program not found", text))
}
