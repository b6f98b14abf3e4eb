//! Approvals: requests of API keys and apps that wait for a person's decision.
//!
//! ```text
//! /approvals ─► /approvals/{id}  approve or reject exactly what is shown
//!                     └─► /html/{number}  the HTML of an email that the request sends
//! ```

#[cfg(test)]
mod tests;

use crate::dashboard::kit::mail_frame::{self, MailFrame, framed_html};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::logs::ActorNames;
use crate::reference::operation::ApiTable;
use crate::reference::resource_page::short_summary;

const LIST: &str = "/dashboard/approvals";
const STATUSES: &[&str] =
    &["pending", "executed", "failed", "rejected", "expired", "approved", "executing", "interrupted"];

/// A status in words.
fn status_label(status: &str) -> String {
    match status {
        "pending" => "Waiting for a decision".into(),
        "executed" => "Approved and executed".into(),
        word => sentence_case(word),
    }
}

/// The title of an operation as the API reference has it, for example "Send an email".
pub(super) fn operation_title(operation: &str) -> String {
    let known = ApiTable::load().operation(operation);
    known.map_or_else(|| sentence_case(operation), |known| short_summary(&known.summary).to_owned())
}
const CONTENT_WARNING: &str = "A program wrote this request, perhaps following a stranger's email. Read the \
    recipients and the content before you approve it.";

const INTERRUPTED: &str = "The request was interrupted while it was carried out: the server stopped, or it took too long. \
                           Check whether it took effect; it is not repeated.";
const ATTACHMENTS_NOTE: &str =
    "The contents of attachments are not shown. Compare the SHA-256 with that of the file that you expect.";

pub const PAGES: &[PageRow] = page_rows! {
    "/approvals" => show_list, reads ["list_approvals"];
    "/approvals/{id}/html/{number}" => show_html, reads ["get_approval"];
    "/approvals/{id}" => show, reads ["get_approval"], forms {
        "approve" => decide("approve_request"), calls "approve_request";
        "reject" => decide("reject_request"), calls "reject_request";
    };
};

#[answer]
pub(super) struct Approval {
    pub id: String,
    status: String,
    client_id: String,
    pub operation: String,
    method: String,
    path: String,
    idempotency_key: Option<String>,
    if_match: Option<String>,
    body: Option<String>,
    emails: Option<Vec<HeldEmail>>,
    hash: String,
    created_at: String,
    pub expires_at: String,
    decided_at: Option<String>,
    response_status: Option<u16>,
    response: Option<Value>,
}

/// An email that the request sends, with recipients and content as they were when it was made.
#[answer]
struct HeldEmail {
    from: String,
    recipients: Vec<String>,
    to: Vec<String>,
    cc: Vec<String>,
    bcc: Vec<String>,
    reply_to: Vec<String>,
    subject: String,
    text: Option<String>,
    html: Option<String>,
    headers: Vec<HeldHeader>,
    attachments: Vec<HeldAttachment>,
    category: String,
    scheduled_at: Option<String>,
}

/// A custom header field.
#[answer]
struct HeldHeader {
    name: String,
    value: String,
}

#[answer]
struct HeldAttachment {
    name: String,
    content_type: String,
    size_bytes: u64,
    sha256: String,
}

impl HeldEmail {
    fn facts(&self) -> Facts {
        let list = |all: &[String]| (!all.is_empty()).then(|| all.join(", "));
        let headers = self.headers.iter().map(|header| format!("{}: {}", header.name, header.value));
        let headers = Some(headers.collect::<Vec<_>>()).filter(|all| !all.is_empty());
        let headers = headers.map(|all| maud! { ul { @for one in &all { li { code { (one) } } } } });
        let files = self.attachments.iter().map(|file| {
            let HeldAttachment { name, content_type, size_bytes, sha256 } = file;
            format!("{name} ({content_type}, {}, SHA-256 {sha256})", file_size(*size_bytes))
        });
        let is_same = self.recipients.len() == self.to.len() + self.cc.len() + self.bcc.len();
        Facts::new()
            .row("Sent to", maud! { strong { (self.recipients.join(", ")) } })
            .row("From", self.from.clone())
            .optional("To", list(&self.to).filter(|_| !is_same || !self.cc.is_empty() || !self.bcc.is_empty()))
            .optional("Cc", list(&self.cc))
            .optional("Bcc", list(&self.bcc))
            .optional("Reply to", list(&self.reply_to))
            .row("Subject", self.subject.clone())
            .row("Category", self.category.clone())
            .optional("Sent at", self.scheduled_at.as_deref().map(|at| time_or_dash(Some(at))))
            .optional("Header fields", headers)
            .optional("Attachments", list(&files.collect::<Vec<_>>()))
    }
}

impl Approval {
    fn page(&self) -> String {
        format!("{LIST}/{}", encode(&self.id))
    }

    fn badge(&self) -> Badge {
        let tone = match self.status.as_str() {
            "executed" => Tone::Good,
            "interrupted" => Tone::Warning,
            word => Tone::of(word),
        };
        Badge::new(status_label(&self.status), tone)
    }

    fn title(&self) -> String {
        operation_title(&self.operation)
    }

    /// The body, indented.
    fn pretty_body(&self) -> String {
        let body = self.body.as_deref().unwrap_or_default();
        let pretty = |value: &Value| serde_json::to_string_pretty(value).ok();
        serde_json::from_str(body).ok().as_ref().and_then(pretty).unwrap_or_else(|| body.to_owned())
    }

    fn emails(&self) -> &[HeldEmail] {
        self.emails.as_deref().unwrap_or_default()
    }
}

async fn show_list(context: &Context<'_>) -> Result<View, Failure> {
    let query = context.query();
    let call = Call::new("list_approvals").query("limit", "50").filters(query, &["status", "cursor"]);
    let found = &context.read_filtered::<Approval>("approvals", &call).await?;
    let filters = [Filter::labelled("status", "Status", STATUSES, status_label)];
    let bar = FilterBar { context, filters: &filters };
    let empty = EmptyState {
        title: if bar.is_active() { "No requests have this status" } else { "No requests yet" },
        text: if context.allows("approve_request") {
            "When the policy of an API key or an app asks for approval, its requests wait here, and you get an email."
        } else {
            "When the policy of an API key or an app asks for approval, its requests wait here."
        },
        action: None,
    };
    let names = ActorNames::load(context).await;
    let table = Table::of("Requests", &found.entries)
        .column("Request", |approval| link(approval.page(), approval.title()))
        .column("From", |approval| names.label(&approval.client_id))
        .column("Status", |approval| approval.badge())
        .column("Made", |approval| time_or_dash(Some(&approval.created_at)))
        .column("Decide until", |approval| {
            time_or_dash((approval.status == "pending").then_some(approval.expires_at.as_str()))
        });
    let body = bar.with_list(found, &table, empty);
    let page = Page::new("Approvals", body).lead("Requests that are carried out only when a person approves them.");
    Ok(page.same_as(call).into())
}

fn facts(approval: &Approval, names: &ActorNames) -> Facts {
    let (client, label) = (approval.client_id.as_str(), names.label(&approval.client_id));
    let until = (approval.status == "pending").then(|| time_or_dash(Some(&approval.expires_at)));
    Facts::new()
        .row("Status", approval.badge())
        .row("Operation", maud_borrow! { code { (approval.operation) } })
        .row("Request", maud_borrow! { code { (approval.method) " " (approval.path) } })
        .optional("Idempotency key", approval.idempotency_key.clone())
        .optional("Only if unchanged", approval.if_match.as_ref().map(|version| format!("If-Match: {version}")))
        .row("Made by", maud_borrow! { (label) @if label != client { " " code { (client) } } })
        .row("Made", time_or_dash(Some(&approval.created_at)))
        .optional("Decide until", until)
        .optional("Decided", approval.decided_at.as_deref().map(|at| time_or_dash(Some(at))))
}

async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let approval: Approval = context.read_field("approval", &Call::new("get_approval").id(context.id())).await?;
    let names = ActorNames::load(context).await;
    let may_decide = approval.status == "pending" && context.may_decide(&approval.operation);
    let decide = |name, label| Form::new(name, label, vec![Field::hidden("hash", approval.hash.clone())]);
    let (approve, reject) = (decide("approve", "Approve and carry out"), decide("reject", "Reject").secondary());
    let body_text = approval.pretty_body();
    let response = approval.response.as_ref().and_then(|value| serde_json::to_string_pretty(value).ok());
    let body = maud_borrow! {
        @if may_decide { (Notice { tone: Tone::Warning, text: CONTENT_WARNING }) }
        @if approval.status == "interrupted" {
            (Notice { tone: Tone::Warning, text: INTERRUPTED })
        }
        section.card { (facts(&approval, &names)) }
        @for (number, email) in approval.emails().iter().enumerate() {
            (email_section(context, &approval, number, email))
        }
        @if !body_text.is_empty() {
            section { h2 { "Request" } (Code::new("Content of the request", &body_text).wrapped()) }
        }
        @if approval.body.is_none() {
            p.soft { "The content has been deleted: it is kept until the request is rejected or expires, or for 24 \
                hours after it is carried out or interrupted." }
        }
        @if let Some(response) = &response {
            section { h2 { "Result" } (Code::new("The operation's response", response).wrapped()) }
        }
        @if may_decide {
            section.card {
                h2 { "Your decision" }
                p { "The request above is carried out once. Without a decision, nothing happens." }
                @if !approval.emails().is_empty() {
                    p.soft { "Exactly these emails are sent. If their template or source changes first, nothing is \
                        sent. The service adds its own links for tracking and unsubscribing." }
                }
                div.actions { (approve.within(context)) (reject.within(context)) }
            }
        }
    };
    let page = Page::new(approval.title(), body).below(LIST, "Approvals");
    Ok(page.same_as(Call::new("get_approval").id(&approval.id)).into())
}

/// An email as it would be sent.
fn email_section(context: &Context<'_>, approval: &Approval, number: usize, email: &HeldEmail) -> impl Renderable {
    let heading = match approval.emails().len() {
        1 => "Email".to_owned(),
        all => format!("Email {} of {all}", number + 1),
    };
    let frame_path = format!("{}/html/{number}", approval.page());
    maud! {
        section.card {
            h2 { (heading) }
            (email.facts())
            @if !email.attachments.is_empty() { p.soft { (ATTACHMENTS_NOTE) } }
            @if let Some(html) = &email.html { (MailFrame::new(context, &frame_path, html)) }
            @if let Some(text) = &email.text { (Code::new("Text of the email", text).wrapped()) }
        }
    }
}

/// The HTML of an email for its frame.
async fn show_html(context: &Context<'_>) -> Result<View, Failure> {
    let approval: Approval = context.read_field("approval", &Call::new("get_approval").id(context.id())).await?;
    let number: usize = context.parameter("number").parse().map_err(|_| Failure::not_found())?;
    let html = approval.emails().get(number).and_then(|email| email.html.as_deref()).ok_or_else(Failure::not_found)?;
    Ok(View::Foreign { html: framed_html(html), remote: context.query().get(mail_frame::REMOTE) == "show" })
}

async fn decide(context: &Context<'_>, operation: &'static str) -> Result<Outcome, Failure> {
    let body = json!({"hash": context.form().get("hash")});
    context
        .act(&Call::new(operation).id(context.id()).json(body), format!("{LIST}/{}", encode(context.id())), "changed")
        .await
}
