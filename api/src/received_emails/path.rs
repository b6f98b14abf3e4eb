//! Path of a received email, and the email and message that it names.

use crate::prelude::*;
use model::received::ReceivedEmail;
use store::received_email;

id_path! { pub ReceivedEmailPath(ReceivedId), "The received email's id (`inb_…`)", "received email" }

/// Loads a received email of the account. A key that is bound to a domain finds only that domain's.
pub(crate) async fn find(state: &AppState, tenant: &Tenant, id: ReceivedId) -> Result<ReceivedEmail> {
    let found = received_email::get(&state.services.store, tenant.account().id, id).await?;
    let is_visible = |email: &ReceivedEmail| tenant.bound_to().is_none_or(|bound_domain| bound_domain == email.domain);
    found.filter(is_visible).ok_or_else(|| Problem::not_found("received email"))
}

/// Loads the stored message, including the trace fields added on receipt.
pub(crate) async fn load_message(state: &AppState, received: &ReceivedEmail) -> Result<Bytes> {
    let bytes = received_email::get_message(&state.services.store, received).await?;
    bytes.ok_or_else(|| Problem::new(ErrorCode::NOT_FOUND, "The message is no longer stored"))
}
