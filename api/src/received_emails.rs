//! Received emails: list and poll ([`list`]), get, reply and forward ([`reply_and_forward`]),
//! delete.
//!
//! Texts and attachments are parsed from the stored message on each request, on a separate thread and with limits
//! (`inbound/src/service/parser.rs`), because the message is untrusted.

pub mod list;
pub mod path;
pub mod reply_and_forward;
pub mod view;

use httpd::large_response::{LargeResponse, LargeResponsePermit};
use httpd::response::{IntoResponse, Response};
use inbound::service::parser;
use store::received_email;

use self::path::{ReceivedEmailPath, find, load_message};
use self::view::{ReceivedEmailDetail, ReceivedEmailResponse};
use crate::attachment_download::{AttachmentDownload, AttachmentPath};
use crate::operation::{Operation, OperationTag};
use crate::prelude::*;
use crate::suppressions::commit_error::commit_error_problem;

/// Tries of a deletion that conflicts with another deletion for the same message.
const TRIES_MAX: usize = 20;

/// The operations on received emails.
pub fn operations() -> Vec<Operation> {
    let tag = OperationTag::new("received_emails").domain_scoped();
    vec![
        tag.get("/received-emails", "List received emails")
            .full_key_or_session(("list_received_emails", "receivedEmails.list"), list::list),
        tag.get("/received-emails/{id}", "Get a received email with its attachments")
            .full_key_or_session(("get_received_email", "receivedEmails.get"), get_received_email),
        tag.get("/received-emails/{id}/raw", "Get the raw message of a received email")
            .full_key_or_session(("get_received_email_raw", "receivedEmails.raw"), raw),
        tag.get("/received-emails/{id}/attachments/{att_id}", "Get an attachment of a received email")
            .full_key_or_session(("get_received_email_attachment", "receivedEmails.attachments.get"), attachment),
        tag.post("/received-emails/{id}/reply", "Reply to a received email")
            .errors(ErrorCode::SENDING)
            .risk(Risk::Send)
            .full_key_or_session(("reply_to_received_email", "receivedEmails.reply"), reply_and_forward::reply)
            .resolved_by(reply_and_forward::resolve_reply),
        tag.post("/received-emails/{id}/forward", "Forward a received email as an attachment")
            .errors(ErrorCode::SENDING)
            .risk(Risk::Send)
            .full_key_or_session(("forward_received_email", "receivedEmails.forward"), reply_and_forward::forward)
            .resolved_by(reply_and_forward::resolve_forward),
        tag.delete("/received-emails/{id}", "Delete a received email and its message")
            .full_key_or_session(("delete_received_email", "receivedEmails.delete"), delete),
    ]
}

/// Parameters of `GET /received-emails/{id}`.
#[derive(Debug)]
pub struct GetReceivedEmail {
    inline: bool,
}

impl RequestQuery for GetReceivedEmail {
    fn read_query(query: &mut Query) -> Result<Self> {
        let attachments = query.parameter(
            "attachments",
            "`inline`: attachments are included in base64; `none`: only their metadata. \
             Fetch large attachments one by one",
            || json!({"type": "string", "enum": ["inline", "none"], "default": "inline"}),
        )?;
        match attachments {
            None | Some("inline") => Ok(Self { inline: true }),
            Some("none") => Ok(Self { inline: false }),
            Some(_) => Err(Problem::field("attachments", "must be `inline` or `none`")),
        }
    }
}

/// `GET /received-emails/{id}`.
///
/// # Errors
/// The email does not exist, or its message is no longer stored; the store cannot be read.
pub async fn get_received_email(
    state: State,
    tenant: Tenant,
    (ReceivedEmailPath(id), input): (ReceivedEmailPath, GetReceivedEmail),
) -> Result<LargeResponse<ReceivedEmailResponse>> {
    let received = find(&state, &tenant, id).await?;
    let permit = LargeResponsePermit::acquire(received.size_bytes).await?;
    // If the message cannot be parsed, show the stored summary; the raw message is available.
    let content = parser::parse_message(load_message(&state, &received).await?).await.unwrap_or_default();
    Ok(permit.attach_to(ReceivedEmailResponse {
        received_email: ReceivedEmailDetail::from_received(&received, content, input.inline),
    }))
}

/// The stored message, as `message/rfc822`.
#[derive(Debug)]
pub struct RawReceivedMessage(Bytes);

impl IntoResponse for RawReceivedMessage {
    const MEDIA_TYPE: &'static str = "message/rfc822";

    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "string", "description": "The message, including the trace header fields added on receipt"})
    }

    fn into_response(self) -> Result<Response> {
        Ok(Self::with_body(self.0))
    }
}

/// `GET /received-emails/{id}/raw`.
///
/// # Errors
/// The email does not exist, or its message is no longer stored; the store cannot be read.
pub async fn raw(
    state: State,
    tenant: Tenant,
    ReceivedEmailPath(id): ReceivedEmailPath,
) -> Result<LargeResponse<RawReceivedMessage>> {
    let received = find(&state, &tenant, id).await?;
    let permit = LargeResponsePermit::acquire(received.size_bytes).await?;
    load_message(&state, &received).await.map(|bytes| permit.attach_to(RawReceivedMessage(bytes)))
}

fn attachment_not_found() -> Problem {
    Problem::new(ErrorCode::NOT_FOUND, "The received email has no such attachment")
}

/// `GET /received-emails/{id}/attachments/{att_id}`.
///
/// # Errors
/// The email does not exist, or has no such attachment; the store cannot be read.
pub async fn attachment(
    state: State,
    tenant: Tenant,
    AttachmentPath { email: ReceivedEmailPath(id), index }: AttachmentPath<ReceivedEmailPath>,
) -> Result<LargeResponse<AttachmentDownload>> {
    let received = find(&state, &tenant, id).await?;
    let permit = LargeResponsePermit::acquire(received.size_bytes).await?;
    let found = parser::parse_attachment(load_message(&state, &received).await?, index).await;
    let found = found.map(|file| AttachmentDownload { name: file.file.filename, data: file.data });
    found.map(|download| permit.attach_to(download)).ok_or_else(attachment_not_found)
}

/// `DELETE /received-emails/{id}`.
pub async fn delete(state: State, tenant: Tenant, ReceivedEmailPath(id): ReceivedEmailPath) -> Result<OkResponse> {
    let store = &state.services.store;
    for _ in 0..TRIES_MAX {
        let received = find(&state, &tenant, id).await?;
        let mut batch = Batch::progress();
        received_email::delete(store, &mut batch, &received).await?;
        match store.commit(batch).await {
            Ok(()) => return Ok(OkResponse::OK),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(commit_error_problem(error)),
        }
    }
    Err(Problem::busy())
}
