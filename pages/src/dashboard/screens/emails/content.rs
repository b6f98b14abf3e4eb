//! The content of an email: HTML in a frame, text, header fields, source.

use super::object::WholeEmail;
use super::{LIST, email_path};
use crate::dashboard::kit::mail_frame::{self, MailFrame, framed_html};
use crate::dashboard::prelude::*;

/// Most bytes of a source on a page; the file has all of it.
const SOURCE_BYTES_MAX: usize = 256 << 10;

/// The content in tabs; the query field `view` chooses one.
pub(super) fn email_content(context: &Context<'_>, email: &WholeEmail) -> impl Renderable {
    let mut tabs = Vec::new();
    if email.html.is_some() {
        tabs.push(("html", "HTML"));
    }
    if email.text.is_some() {
        tabs.push(("text", "Text"));
    }
    tabs.push(("fields", "Header and files"));
    let request = context.request;
    let asked = request.query.get("view");
    let shown = tabs.iter().find(|(name, _)| *name == asked).or(tabs.first()).map_or("fields", |(name, _)| *name);
    let link = move |name: &str| {
        let query = request.query.with("view", name).with("done", "").with(mail_frame::REMOTE, "").to_query();
        format!("{}?{query}#content-of-email", request.path)
    };
    let title = if email.item.status == "scheduled" { "What will be sent" } else { "What was sent" };
    let id = email.item.id.as_str();
    let frame_path = format!("{}/html", email_path(id));
    maud! {
        section aria-labelledby="content-of-email" {
            h2 #content-of-email { (title) }
            nav.tabs aria-label="Content" {
                @for (name, title) in &tabs {
                    a href=(link(name)) aria-current=[(*name == shown).then_some("page")] { (*title) }
                }
                // Emails of the service itself, such as sign-in links, are not shown.
                @if context.allows("get_email_raw") && email.has_content() {
                    a href={ (email_path(id)) "/source" } { "Source" }
                    a href={ (email_path(id)) "/message.eml" } download { "Download .eml" }
                }
            }
            @match shown {
                "html" => { (MailFrame::new(context, &frame_path, email.html.as_deref().unwrap_or_default())) }
                "text" => { (Code::new("The email as text", email.text.as_deref().unwrap_or_default()).wrapped()) }
                _ => { (email_field_tables(email, context.allows("get_email_attachment"))) }
            }
        }
    }
}

/// Header fields and attached files.
fn email_field_tables(email: &WholeEmail, may_download: bool) -> impl Renderable {
    let mut fields = Table::new("Header fields", &["Field", "Value"]);
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            fields.push(Row::new().cell(name).cell(value));
        }
    };
    field("From", &email.item.from);
    field("To", &email.item.to.join(", "));
    field("Cc", &email.item.cc.join(", "));
    field("Bcc", &email.item.bcc.join(", "));
    field("Reply-To", &email.reply_to.join(", "));
    field("Subject", &email.item.subject);
    field("Message-ID", &email.message_id);
    for (name, value) in &email.headers {
        field(name, &value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let files =
        Table::new("Attached files", &["File", "Type", "Size"]).numbers(&["Size"]).rows(&email.attachments, |file| {
            let name = file.name.as_deref().unwrap_or("(no name)");
            let path = format!("{}/attachments/{}", email_path(&email.item.id), encode(&file.id));
            let row =
                Row::new().cell(maud! { @if may_download { a href=(path) download { (name) } } @else { (name) } });
            row.cell(&file.content_type).cell(file_size(file.size))
        });
    maud! {
        (fields)
        @if files.is_empty() { p.soft { "No files are attached." } } @else { (files) }
    }
}

/// The HTML for the frame.
pub(super) async fn show_html(context: &Context<'_>) -> Result<View, Failure> {
    let email = WholeEmail::read(context, context.id()).await?;
    let html = email.html.ok_or_else(Failure::not_found)?;
    Ok(View::Foreign { html: framed_html(&html), remote: context.query().get(mail_frame::REMOTE) == "show" })
}

pub(super) async fn show_source(context: &Context<'_>) -> Result<View, Failure> {
    let id = context.id();
    let call = Call::new("get_email_raw").id(id);
    let raw = context.perform(&call).await?.body;
    let path = email_path(id);
    let body = source(&raw, &format!("{path}/message.eml"));
    Ok(Page::new("Source of the email", body).below(LIST, "Emails").below(path, "Email").same_as(call).into())
}

/// A message as a page shows it: its beginning, if it is long.
pub(in crate::dashboard::screens) fn source(raw: &[u8], file: &str) -> impl Renderable + use<> {
    let shown = &raw[..raw.len().min(SOURCE_BYTES_MAX)];
    let text = String::from_utf8_lossy(shown).replace("\r\n", "\n");
    let is_cut = shown.len() < raw.len();
    let (size, file) = (file_size(raw.len() as u64), file.to_owned());
    maud! {
        p.soft {
            (size) ". " a href=(file) download { "Download .eml" }
            @if is_cut { " Only the beginning is shown here; the file contains all of it." }
        }
        (Code::new("Source of the email", &text).wrapped())
    }
}

pub(super) async fn download_attachment(context: &Context<'_>) -> Result<View, Failure> {
    let email = WholeEmail::read(context, context.id()).await?;
    let id = context.parameter("attachment");
    let file = email.attachments.iter().find(|file| file.id == id).ok_or_else(Failure::not_found)?;
    let file_name = file.name.clone().unwrap_or_else(|| file.id.clone());
    let call = Call::new("get_email_attachment").id(context.id()).parameter("att_id", id);
    Ok(View::Download { call, file_name })
}

pub(super) async fn download(context: &Context<'_>) -> Result<View, Failure> {
    let id = context.id().to_owned();
    let file_name = format!("{id}.eml");
    Ok(View::Download { call: Call::new("get_email_raw").id(id), file_name })
}
