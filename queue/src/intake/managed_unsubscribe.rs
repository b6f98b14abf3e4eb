//! Managed unsubscribe (RFC 8058): adds the link to the text and header of an email, whether composed from the API or
//! received whole over SMTP.

use std::borrow::Cow;

use message::address::Address;
use message::compose::{Composition, CustomHeader};
use message::header::{self, SubmittedMessage};
use model::draft::{Draft, DraftContent, DraftRecipient};
use model::id::EmailId;
use model::{rewrite, unsubscribe};
use store::access::Tenant;

use super::Intake;
use crate::intake::submit_error::SubmitError;

impl Intake {
    /// Adds the unsubscribe link if the email asks for it, and returns its URL.
    pub(super) async fn manage_unsubscribe(
        &self,
        tenant: &Tenant,
        id: EmailId,
        draft: &mut Draft,
    ) -> Result<Option<String>, SubmitError> {
        if !draft.manages_unsubscribe() {
            return Ok(None);
        }
        let Some(recipient) = bound_recipient(draft)? else { return Ok(None) };
        let links = self.links.unsubscribe_links().ok_or_else(|| {
            invalid_unsubscribe("needs the public URL of this server: the operator must set `base_url` in [api]")
        })?;
        let url = links.link(tenant.account().id, id, &recipient, draft.category);
        match &mut draft.content {
            DraftContent::Parts(parts) => insert_link(parts, &url)?,
            DraftContent::Raw { message, .. } => {
                let old = message.bytes().clone();
                let put = url.clone();
                let link = move || SubmittedMessage::new(rewrite::insert_unsubscribe_link(&old, &put));
                // The MIME parts are decoded, whatever their size: off the async threads.
                *message = tokio::task::spawn_blocking(link).await.map_err(|error| {
                    tracing::error!(%error, "cannot insert the unsubscribe link into a message");
                    SubmitError::Unavailable
                })?;
            }
        }
        Ok(Some(url))
    }
}

/// The recipient whom the link is bound to: the first `to`. The header of an SMTP
/// message may name a mailing list; there it is the first named address that is an envelope recipient.
fn bound_recipient(draft: &Draft) -> Result<Option<Address>, SubmitError> {
    Ok(match &draft.content {
        DraftContent::Parts(parts) => {
            let first = parts.to.first().or(parts.cc.first()).or(parts.bcc.first());
            first.map(|mailbox| mailbox.address.clone())
        }
        DraftContent::Raw { message, .. } => {
            let summary = header::parse_header(message)?.summary;
            let is_recipient = |to: &Address| draft.recipients.iter().any(|recipient| recipient.address == *to);
            let named = summary.to.into_iter().chain(summary.cc).map(|mailbox| mailbox.address).find(is_recipient);
            let first = || draft.recipients.first().map(|DraftRecipient { address, .. }| address.clone());
            named.or_else(first)
        }
    })
}

fn invalid_unsubscribe(message: &str) -> SubmitError {
    SubmitError::Invalid { field: "unsubscribe", message: message.to_owned() }
}

/// Replaces the placeholder in the texts with the link, and sets the header fields.
fn insert_link(parts: &mut Composition, url: &str) -> Result<(), SubmitError> {
    let put = |text: &mut String| {
        if let Cow::Owned(linked) = unsubscribe::insert_link(text, url) {
            *text = linked;
        }
    };
    put(&mut parts.subject);
    parts.html.iter_mut().for_each(put);
    parts.text.iter_mut().for_each(put);
    // Drop the sender's own unsubscribe fields: the managed link replaces them.
    parts.headers.retain(|header| !unsubscribe::is_unsubscribe_header(header.name()));
    for (name, value) in unsubscribe::headers(url) {
        let header = CustomHeader::new(name, &value).map_err(|error| invalid_unsubscribe(&error.to_string()))?;
        parts.headers.push(header);
    }
    Ok(())
}
