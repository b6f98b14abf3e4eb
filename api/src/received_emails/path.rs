//! Path of a received email, and the email and message that it names.

use crate::prelude::*;
use bytes::Bytes;
use model::id::ReceivedId;
use model::received::ReceivedEmail;
use store::received_email;

const ID: &str = "id";

pub(crate) fn id_parameter() -> Value {
    schema::path_parameter(ID, "The received email's id (`inb_…`)")
}

#[derive(Debug, Clone, Copy)]
pub struct ReceivedEmailPath(pub(crate) ReceivedId);

impl FromRequest for ReceivedEmailPath {
    fn describe(_: &mut Schemas) -> RequestSpec {
        RequestSpec { parameters: vec![id_parameter()], ..RequestSpec::default() }
    }

    /// A malformed id is answered 404, like an unknown one.
    fn read(call: &Request) -> Result<Self, Problem> {
        call.path_parameter(ID).parse().map(Self).map_err(|_| received_email_not_found())
    }
}

fn received_email_not_found() -> Problem {
    Problem::new(ErrorCode::NOT_FOUND, "No such received email")
}

/// Loads a received email of the account. A key that is bound to a domain finds only that domain's.
pub(crate) async fn find(state: &AppState, tenant: &Tenant, id: ReceivedId) -> Result<ReceivedEmail, Problem> {
    let found = received_email::get(&state.services.store, tenant.account().id, id).await?;
    let is_visible = |email: &ReceivedEmail| tenant.bound_to().is_none_or(|bound_domain| bound_domain == email.domain);
    found.filter(is_visible).ok_or_else(received_email_not_found)
}

/// Loads the stored message, including the trace fields added on receipt.
pub(crate) async fn load_message(state: &AppState, received: &ReceivedEmail) -> Result<Bytes, Problem> {
    let bytes = received_email::get_message(&state.services.store, received).await?;
    bytes.ok_or_else(|| Problem::new(ErrorCode::NOT_FOUND, "The message is no longer stored"))
}
