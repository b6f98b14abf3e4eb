//! `GET /emails/{id}/attachments/{att_id}`: an attachment of a sent email, from the stored message.

use httpd::large_response::{LargeResponse, LargeResponsePermit};
use model::parsed_body::parse_attachment;
use model::received::attachment_index;

use super::path::{EmailPath, find_without_recipients};
use crate::attachment_download::AttachmentDownload;
use crate::prelude::*;

#[derive(Debug)]
pub struct SentAttachmentPath {
    id: EmailPath,
    index: usize,
}

fn attachment_not_found() -> Problem {
    Problem::new(ErrorCode::NOT_FOUND, "The email has no such attachment, or its content is no longer stored")
}

impl FromRequest for SentAttachmentPath {
    fn parameters() -> Vec<Value> {
        let attachment = schema::path_parameter("att_id", "The attachment's id (`att_0` is the first)");
        [EmailPath::parameters(), vec![attachment]].concat()
    }

    fn read(call: &Request) -> Result<Self> {
        let id = EmailPath::read(call)?;
        let index = attachment_index(call.path_parameter("att_id")).ok_or_else(attachment_not_found)?;
        Ok(Self { id, index })
    }
}

/// `GET /emails/{id}/attachments/{att_id}`.
///
/// # Errors
/// The email does not exist or has no such attachment, its content is confidential or no longer stored; the store cannot
/// be read.
pub async fn get(
    state: State,
    tenant: Tenant,
    SentAttachmentPath { id: EmailPath(id), index }: SentAttachmentPath,
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
