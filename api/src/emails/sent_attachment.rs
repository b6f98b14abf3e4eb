//! `GET /emails/{id}/attachments/{att_id}`: an attachment of a sent email, from the stored message.

use httpd::large_response::{LargeResponse, LargeResponsePermit};
use model::parsed_body::parse_attachment;

use super::path::{EmailPath, find_without_recipients};
use crate::attachment_download::{AttachmentDownload, AttachmentPath};
use crate::prelude::*;

fn attachment_not_found() -> Problem {
    Problem::new(ErrorCode::NOT_FOUND, "The email has no such attachment, or its content is no longer stored")
}

/// `GET /emails/{id}/attachments/{att_id}`.
///
/// # Errors
/// The email does not exist or has no such attachment, its content is confidential or no longer stored; the store cannot
/// be read.
pub async fn get(
    state: State,
    tenant: Tenant,
    AttachmentPath { email: EmailPath(id), index }: AttachmentPath<EmailPath>,
) -> Result<LargeResponse<AttachmentDownload>> {
    let email = find_without_recipients(&state, &tenant, id).await?;
    if email.is_confidential() {
        return Err(attachment_not_found());
    }
    let permit = LargeResponsePermit::acquire(email.size_bytes).await?;
    let raw = store::email::get_body(&state.services.store, email.account, email.id).await?;
    let raw = raw.ok_or_else(attachment_not_found)?;
    let found = tokio::task::spawn_blocking(move || parse_attachment(&raw, index)).await.map_err(Problem::internal)?;
    let (file, data) = found.ok_or_else(attachment_not_found)?;
    let name = file.name.unwrap_or_else(|| format!("attachment-{}", index + 1));
    Ok(permit.attach_to(AttachmentDownload { name, data }))
}
