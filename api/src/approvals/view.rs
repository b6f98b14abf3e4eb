//! Approvals as the API shows them.

use crate::prelude::*;
use message::address::Mailbox;
use model::approval::{Approval, ApprovalState, ApprovalStatus, HeldContent};
use model::client_policy::ApprovalKind;
use model::email::Category;
use model::held_email::HeldEmail;

list_response! { pub(super) ApprovalList { approvals: ApprovalView } }

object_response! { "An approval", pub(super) ApprovalResponse { approval: ApprovalView } }

object_view! {
    /// A client's request that waits for a person's decision, or has been decided
    #[schema(name = "Approval")]
    pub(super) struct ApprovalView, pub(super) fn new(
        state: &AppState, approval: &Approval, content: Option<HeldContent>;
        let result = match &approval.state {
            ApprovalState::Executed { result, .. } => Some(result),
            _ => None,
        };
        let (request, decision) = (&approval.request, approval.decision());
        let path = match request.query.as_str() {
            "" => request.path.clone(),
            query => format!("{}?{query}", request.path),
        };
        let response = content.as_ref().and_then(|content| serde_json::from_str(&content.response).ok());
        let (body, emails) = content.map(|content| (content.body, content.emails)).unzip()
    ) {
        /// `apr_…`
        id: ApprovalId = approval.id,
        /// The status; `failed` means that the response is an error, `interrupted` that it may have been executed
        #[schema(enum = ApprovalStatus::WORDS)]
        status: String = approval.status(state.services.clock.now()).word().to_owned(),
        /// The kind of operation that the policy holds
        #[schema(enum = ApprovalKind::WORDS)]
        kind: String = ApprovalKind::word(approval.kind).to_owned(),
        /// The API key (`key_…`) or grant of an app (`grant_…`) that made the request
        client_id: String = approval.client.to_string(),
        /// The operation
        operation: String = request.operation.clone(),
        /// The method
        method: String = request.method.clone(),
        /// The path with the query
        path: String = path,
        /// The `Idempotency-Key` of the request
        idempotency_key: Option<String> = request.idempotency_key.clone(),
        /// The `If-Match` of the request: it is executed only if the object still has this version
        if_match: Option<String> = request.header("if-match").map(str::to_owned),
        /// The body as JSON text; only in the response for one approval, until the content is deleted
        body: Option<String> = body,
        /// The emails that the request sends; only in the response for one approval, until the content is deleted
        emails: Option<Vec<HeldEmailView>> =
            emails.map(|emails| emails.into_iter().map(HeldEmailView::from_email).collect()),
        /// SHA-256 of the request and its emails; a decision names it
        hash: String = approval.hash.clone(),
        /// The page on which a person decides
        url: String = approval_url(state, approval.id),
        /// When the request was made
        created_at: JsonTimestamp = JsonTimestamp(approval.created_at),
        /// End of the time for a decision
        expires_at: JsonTimestamp = JsonTimestamp(approval.expires_at()),
        /// The user who decided
        decided_by: Option<UserId> = decision.map(|decision| decision.by),
        /// When it was decided
        decided_at: Option<JsonTimestamp> = decision.map(|decision| JsonTimestamp(decision.at)),
        /// The status of the response, once the request was executed
        response_status: Option<u16> = result.map(|result| result.status),
        /// The code of the error, if the response is one
        error_code: Option<String> = result.and_then(|result| result.error_code.clone()),
        /// The body of the response, for 24 hours; only in the response for one approval
        #[schema(with = response_schema)]
        response: Option<Value> = response,
    }
}

fn response_schema(_: &mut Schemas) -> Value {
    serde_json::json!({"type": ["object", "null"]})
}

object_view! {
    /// An email that a held request sends
    #[schema(name = "ApprovalEmail")]
    pub(super) struct HeldEmailView, fn from_email(
        email: HeldEmail;
        let texts = |mailboxes: &[Mailbox]| mailboxes.iter().map(Mailbox::to_string).collect();
        let attachments = email.attachments.into_iter().map(|file| HeldAttachmentView {
            name: file.name,
            content_type: file.content_type,
            size_bytes: file.size_bytes,
            sha256: file.sha256,
        })
    ) {
        /// The author
        from: String = email.from.to_string(),
        /// All recipients: those of to, cc and bcc
        recipients: Vec<String> = email.recipients.iter().map(Address::to_string).collect(),
        /// The header field To
        to: Vec<String> = texts(&email.to),
        /// The header field Cc
        cc: Vec<String> = texts(&email.cc),
        /// Recipients that no header field names
        bcc: Vec<String> = texts(&email.bcc),
        /// Where replies go
        reply_to: Vec<String> = texts(&email.reply_to),
        /// The subject
        subject: String = email.subject,
        /// The plain-text body
        text: Option<String> = email.text,
        /// The HTML body
        html: Option<String> = email.html,
        /// The custom header fields
        headers: Vec<HeldHeaderView> =
            email.headers.into_iter().map(|(name, value)| HeldHeaderView { name, value }).collect(),
        /// The attachments, without their contents
        attachments: Vec<HeldAttachmentView> = attachments.collect(),
        /// The category
        #[schema(enum = Category::WORDS)]
        category: &'static str = email.category.word(),
        /// When it is sent, if not at once
        scheduled_at: Option<JsonTimestamp> = email.scheduled_at.map(JsonTimestamp),
    }
}

/// A custom header field of such an email
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ApprovalHeader")]
struct HeldHeaderView {
    /// The name
    name: String,
    /// The value
    value: String,
}

/// An attachment of such an email
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "ApprovalAttachment")]
struct HeldAttachmentView {
    /// The file name
    name: String,
    /// The media type
    content_type: String,
    /// The size
    size_bytes: u64,
    /// SHA-256 of the content, in hexadecimal
    sha256: String,
}

/// The page on which a person decides.
pub(super) fn approval_url(state: &AppState, id: ApprovalId) -> String {
    format!("{}/dashboard/approvals/{id}", state.options.base_url)
}
