//! The content of a held request in the store: JSON, encrypted with the key that is not in the store.

use crate::prelude::*;
use model::approval::{Approval, HeldContent};
use store::approval::content_context;

/// Encrypts a content for the row of its approval.
///
/// # Errors
/// The cipher fails.
pub(crate) fn seal(state: &AppState, id: ApprovalId, content: &HeldContent) -> Result<Vec<u8>> {
    let plain = serde_json::to_vec(content).map_err(Problem::internal)?;
    state.accounts.vault.seal(&content_context(id), &plain).map_err(Problem::internal)
}

/// Reads and decrypts the content of an approval; `None` once it was deleted.
///
/// # Errors
/// The store cannot be read, or the content cannot be decrypted.
pub(crate) async fn open(state: &AppState, approval: &Approval) -> Result<Option<HeldContent>> {
    let sealed = store::approval::get_content(&state.services.store, approval.account, approval.id).await?;
    let Some(sealed) = sealed else { return Ok(None) };
    let plain = state.accounts.vault.open(&content_context(approval.id), &sealed).map_err(Problem::internal)?;
    serde_json::from_slice(&plain).map(Some).map_err(Problem::internal)
}
