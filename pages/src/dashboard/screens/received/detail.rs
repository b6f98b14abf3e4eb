//! One received mail: proofs of the sender, content, files, header.

use super::object::{ReceivedFile, WholeReceived, proof_badge};
use super::{LIST, mail_path};
use crate::dashboard::kit::mail_frame::{self, MailFrame, framed_html};
use crate::dashboard::prelude::*;
use crate::dashboard::screens::emails;

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let mail = &WholeReceived::read(context).await?;
    let path = mail_path(context.id());
    let body = maud! {
        div.columns.wide-first {
            div.sections { (received_content(context, mail)) (received_files(context, mail)) }
            div.sections {
                section aria-labelledby="facts" { h2 #facts { "Details" } div.card { (facts(mail)) } }
                section aria-labelledby="proofs" { h2 #proofs { "Is the sender \
                    genuine?" } div.card { (sender_proofs(mail)) } }
                section aria-labelledby="like-this" {
                    h2 #like-this { "All like this" }
                    ul.chips { @for (label, query) in like_this(mail) { li { a href={ (LIST) "?" (query) } { (label) } } } }
                }
            }
        }
    };
    let actions = maud! {
        @if context.allows("reply_to_received_email") { a.button.primary href={ (path) "/reply" } { "Reply" } }
        @if context.allows("forward_received_email") { a.button href={ (path) "/forward" } { "Forward" } }
        @if context.allows("delete_received_email") { a.button href={ (path) "/delete" } { "Delete" } }
    };
    let lead = format!("From {} to {}", mail.item.from, mail.item.rcpt_to);
    let page = Page::new(mail.item.title(), body).below(LIST, "Received mail").lead(lead).actions(actions);
    Ok(page.same_as(WholeReceived::call(context.id())).into())
}

fn facts(mail: &WholeReceived) -> Facts {
    let item = &mail.item;
    let spam = match item.spam_status.as_str() {
        "spam" => Badge::new("Spam", Tone::Bad),
        "not_spam" => Badge::new("Not spam", Tone::Good),
        _ => Badge::new("Not checked", Tone::Neutral),
    };
    let score = mail.spam_score.map(|score| format!("{score:.1}"));
    Facts::new()
        .row("Received", time_or_dash(Some(&item.received_at)))
        .row("Received for", item.rcpt_to.as_str())
        .row("Envelope sender", item.envelope_from.as_deref().unwrap_or("None: it is a notice from a mail host"))
        .row("Spam", spam)
        .optional("Spam score", score)
        .row("Size", file_size(mail.size))
        .optional("Auto-replies", mail.in_reply_to.as_ref().map(|id| maud! { code { (id) } }))
        .row("Id", maud! { code { (item.email_id) } })
}

/// SPF, DKIM and DMARC, with what the results mean.
fn sender_proofs(mail: &WholeReceived) -> impl Renderable {
    let auth = &mail.item.auth;
    let meaning = match (auth.dmarc.as_str(), auth.spf.as_str(), auth.dkim.as_str()) {
        ("pass", ..) => "The domain in the sender's address confirms this email.",
        ("fail", ..) => "The domain in the sender's address does not confirm this email: the sender may be forged.",
        ("temperror" | "permerror", ..) => "The policy of the sender's domain could not be read.",
        (_, "pass", _) | (_, _, "pass") => {
            "The sending host or a signature is proven, but the domain has no DMARC policy."
        }
        _ => "Nothing proves who sent this email: anyone can use this sender address.",
    };
    let facts = Facts::new()
        .row("DMARC: domain of the sender", proof_badge(&auth.dmarc))
        .row("SPF: sending host", proof_badge(&auth.spf))
        .row("DKIM: signature", proof_badge(&auth.dkim))
        .optional("ARC: hosts on the way", auth.arc.as_deref().map(proof_badge));
    maud! { p { (meaning) } (facts) }
}

/// Labels, and queries of the list that find this mail.
fn like_this(mail: &WholeReceived) -> Vec<(String, String)> {
    let item = &mail.item;
    let from = item.from.rsplit_once('<').map_or(item.from.as_str(), |(_, rest)| rest.trim_end_matches('>'));
    vec![
        (format!("From {from}"), format!("from={}", encode(from))),
        (format!("To {}", item.rcpt_to), format!("to={}", encode(&item.rcpt_to))),
        (format!("Spam: {}", item.spam_status.replace('_', " ")), format!("spam_status={}", encode(&item.spam_status))),
    ]
}

/// The content in tabs; the query field `view` chooses one.
fn received_content(context: &Context<'_>, mail: &WholeReceived) -> impl Renderable {
    let mut tabs = Vec::new();
    if mail.html.is_some() {
        tabs.push(("html", "HTML"));
    }
    tabs.push(("text", "Text"));
    if mail.stripped_text.is_some() && mail.stripped_text != mail.text {
        tabs.push(("new", "Without quotes"));
    }
    tabs.push(("fields", "Header"));
    let asked = context.query().get("view");
    let shown = tabs.iter().find(|(name, _)| *name == asked).or(tabs.first()).map_or("text", |(name, _)| name);
    let link = move |name: &str| {
        let query = context.query().with("view", name).with("done", "").with(mail_frame::REMOTE, "").to_query();
        format!("{}?{query}", context.request.path)
    };
    let path = mail_path(&mail.item.email_id);
    let frame_path = format!("{path}/html");
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "(no text)".into());
    maud! {
        section aria-labelledby="content-of-mail" {
            h2 #content-of-mail { "The mail" }
            nav.tabs aria-label="Content" {
                @for (name, title) in &tabs {
                    a href=(link(name)) aria-current=[(*name == shown).then_some("page")] { (*title) }
                }
                @if context.allows("get_received_email_raw") {
                    a href={ (path) "/source" } { "Source" }
                    a href={ (path) "/message.eml" } download { "Download .eml" }
                }
            }
            @match shown {
                "html" => { (MailFrame::new(context, &frame_path, mail.html.as_deref().unwrap_or_default())) }
                "new" => { (Code::new("The new text of the mail", &text(&mail.stripped_text)).wrapped()) }
                "fields" => { (header_table(mail)) }
                _ => { (Code::new("The mail as text", &text(&mail.text)).wrapped()) }
            }
        }
    }
}

fn header_table(mail: &WholeReceived) -> Table {
    Table::of("Header fields", &mail.headers)
        .column("Field", |line| &line.name)
        .column("Value", |line| &line.value)
        .into()
}

fn received_files(context: &Context<'_>, mail: &WholeReceived) -> Fragment {
    if mail.attachments.is_empty() {
        return Fragment::default();
    }
    let can_download = context.allows("get_received_email_attachment");
    let table =
        Table::new("Attached files", &["File", "Type", "Size"]).numbers(&["Size"]).rows(&mail.attachments, |file| {
            let name = if file.filename.is_empty() { &file.id } else { &file.filename };
            let path = format!("{}/attachments/{}", mail_path(&mail.item.email_id), encode(&file.id));
            let row = Row::new().cell(maud! {
                @if can_download { a href=(path) download { (name) } } @else { (name) }
                @if file.disposition == "inline" { " " span.small.soft { "in the text" } }
            });
            row.cell(&file.content_type).cell(file_size(file.size))
        });
    Fragment::new(maud! {
        section aria-labelledby="files" {
            h2 #files { "Files" }
            p.small.soft { "Be careful with files from strangers: they have not been checked for viruses." }
            (table)
        }
    })
}

/// The HTML for the frame. Pictures that came with the mail are put into it.
pub(super) async fn show_html(context: &Context<'_>) -> Result<View, Failure> {
    let mail = WholeReceived::read(context).await?;
    let html = mail.html.ok_or_else(Failure::not_found)?;
    let is_inline = |file: &ReceivedFile| file.content_id.is_some() && file.content_type.starts_with("image/");
    let html = if html.contains("cid:") && mail.attachments.iter().any(is_inline) {
        let call = Call::new("get_received_email").id(context.id()).query("attachments", "inline");
        let whole = context.read_field::<WholeReceived>("received_email", &call).await?;
        with_pictures(html, &whole.attachments)
    } else {
        html
    };
    Ok(View::Foreign { html: framed_html(&html), remote: context.query().get(mail_frame::REMOTE) == "show" })
}

/// Most bytes of the pictures that are put into the HTML, in base64.
const PICTURE_BYTES_MAX: usize = 8 << 20;

/// Puts pictures in place of their `cid:` links (RFC 2392).
fn with_pictures(mut html: String, files: &[ReceivedFile]) -> String {
    let mut bytes_left = PICTURE_BYTES_MAX;
    for file in files {
        let (Some(id), Some(data)) = (&file.content_id, &file.data) else { continue };
        let id = id.trim_matches(['<', '>']);
        // Only types that are nothing but pictures: an SVG is a document.
        let media_type = match file.content_type.as_str() {
            "image/png" | "image/jpeg" | "image/gif" | "image/webp" => file.content_type.as_str(),
            _ => continue,
        };
        let link = format!("cid:{id}");
        let size = data.len() * html.matches(&link).count();
        if id.is_empty() || size == 0 || size > bytes_left {
            continue;
        }
        bytes_left -= size;
        html = html.replace(&link, &format!("data:{media_type};base64,{data}"));
    }
    html
}

pub(super) async fn download_attachment(context: &Context<'_>) -> Result<View, Failure> {
    let mail = WholeReceived::read(context).await?;
    let id = context.parameter("attachment");
    let file = mail.attachments.iter().find(|file| file.id == id).ok_or_else(Failure::not_found)?;
    let file_name = if file.filename.is_empty() { file.id.clone() } else { file.filename.clone() };
    let call = Call::new("get_received_email_attachment").id(context.id()).parameter("att_id", id);
    Ok(View::Download { call, file_name })
}

pub(super) async fn show_source(context: &Context<'_>) -> Result<View, Failure> {
    let call = Call::new("get_received_email_raw").id(context.id());
    let raw = context.perform(&call).await?.body;
    let path = mail_path(context.id());
    let body = emails::source(&raw, &format!("{path}/message.eml"));
    Ok(Page::new("Source of the mail", body).below(LIST, "Received mail").below(path, "Mail").same_as(call).into())
}

pub(super) async fn download(context: &Context<'_>) -> Result<View, Failure> {
    let file_name = format!("{}.eml", context.id());
    Ok(View::Download { call: Call::new("get_received_email_raw").id(context.id()), file_name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_replace_their_links() {
        let file = |content_type: &str, id: &str| ReceivedFile {
            content_type: content_type.into(),
            content_id: Some(id.into()),
            data: Some("QUJD".into()),
            ..ReceivedFile::default()
        };
        let html = "<img src=\"cid:a@b\"><img src='cid:svg'>".to_owned();
        let html =
            with_pictures(html, &[file("image/png", "<a@b>"), file("image/svg+xml", "svg"), file("image/png", "")]);
        assert_eq!(html, "<img src=\"data:image/png;base64,QUJD\"><img src='cid:svg'>");
    }
}
