//! Write an email: with own content, or from a published template with a field for each variable.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Map;

use super::{LIST, email_path, listed};
use crate::dashboard::prelude::*;
use crate::dashboard::request::UploadedFile;

/// Domains that are read for the help of the sender, the newest first, and those that it names.
const DOMAINS_MAX: usize = 100;
const DOMAINS_NAMED: usize = 5;

#[answer]
struct TemplateChoice {
    id: String,
    name: String,
    subject: Option<String>,
    from: Option<Value>,
    category: String,
    published_version: Option<u64>,
    variables: Vec<VariableChoice>,
}

#[answer]
struct VariableChoice {
    key: String,
    r#type: String,
    required: bool,
    fallback_value: Value,
}

#[answer]
struct SenderDomain {
    name: String,
    status: String,
}

#[derive(Debug, Deserialize)]
struct AcceptedEmail {
    id: String,
    #[serde(default)]
    warnings: Vec<String>,
}

pub(super) async fn show(context: &Context<'_>) -> Result<View, Failure> {
    let template = read_template(context).await?;
    let published = Call::new("list_templates").query("status", "published").query("limit", "100");
    let templates: Vec<TemplateChoice> = match &template {
        None => context.read_allowed("templates", &published).await?,
        Some(_) => Vec::new(),
    };
    let form = form(context, template.as_ref(), &sender_help(context).await?);
    let body = maud! {
        @if let Some(template) = &template {
            p { "The content comes from the template “" (template.name) "”. " a href={ (LIST) "/new" } { "Write without a template" } }
        } @else if !templates.is_empty() {
            form.filters method="get" action={ (LIST) "/new" } {
                div.field {
                    label for="choose-template" { "Start from a template" }
                    select id="choose-template" name="template" {
                        @for template in &templates { option value=(template.id) { (template.name) } }
                    }
                }
                div.buttons { button.button type="submit" { "Use it" } }
            }
        }
        div.card.compose { (form.within(context)) }
    };
    let example =
        json!({"from": "Ada <ada@example.com>", "to": ["grace@example.net"], "subject": "Welcome", "text": "Hello"});
    let page = Page::new("Write an email", body).below(LIST, "Emails").same_as(Call::new("send_email").json(example));
    Ok(page.into())
}

/// The template that the query names.
async fn read_template(context: &Context<'_>) -> Result<Option<TemplateChoice>, Failure> {
    let id = context.query().get("template");
    if id.is_empty() {
        return Ok(None);
    }
    context.read_field("template", &Call::new("get_template").parameter("id_or_alias", id)).await.map(Some)
}

/// A sentence about the possible senders.
async fn sender_help(context: &Context<'_>) -> Result<String, Failure> {
    if !context.allows("list_domains") {
        return Ok("An address of a verified domain".into());
    }
    let call = Call::new("list_domains").query("limit", DOMAINS_MAX.to_string());
    let domains: Vec<SenderDomain> = context.read_field("domains", &call).await?;
    let verified: Vec<_> =
        domains.iter().filter(|domain| domain.status == "verified").map(|d| d.name.as_str()).collect();
    let (named, others) = verified.split_at(verified.len().min(DOMAINS_NAMED));
    let others = match others.len() {
        0 => String::new(),
        _ if domains.len() == DOMAINS_MAX => " and more".into(),
        count => format!(" and {count} more"),
    };
    Ok(match named {
        [] => "No domain is verified yet: first add and verify one under Domains".into(),
        names => format!("An address of a verified domain: {}{others}", names.join(", ")),
    })
}

const ADDRESSES: &str = "One address per line, or separated by commas";

fn form(context: &Context<'_>, template: Option<&TemplateChoice>, sender_help: &str) -> Form<'static> {
    let query = context.query();
    let addresses = |name: &'static str, label: &'static str, rows| Field::new(name, label, Control::Lines { rows });
    let from = Field::text("from", "From").placeholder("Ada Shop <hi@example.com>").help(sender_help.to_owned());
    let has_sender = template.is_some_and(|template| template.from.is_some());
    let mut fields = vec![
        form_key::field(context),
        if has_sender { from } else { from.required() }.value(query.get("from")),
        addresses("to", "To", 2).value(query.get("to")).required().help(ADDRESSES),
        addresses("cc", "Copy (cc)", 1),
        addresses("bcc", "Blind copy (bcc)", 1).help("The other recipients do not see these addresses"),
    ];
    fields.extend(content_fields(template));
    let categories =
        listed::CATEGORIES.iter().map(|word| ((*word).to_owned(), crate::dashboard::kit::text::sentence_case(word)));
    let default = template.map_or("transactional", |template| template.category.as_str());
    fields.extend([
        Field::new("category", "Category", Control::Select(categories.collect()))
            .value(default)
            .help("Newsletter and product emails are not sent to people who have opted out of them"),
        Field::new("scheduled_at", "Send later at", Control::DateTime)
            .help("In Coordinated Universal Time (UTC). Leave empty to send now"),
        Field::new("tags", "Tags", Control::Area { rows: 1 })
            .ignored()
            .placeholder("order: 1043")
            .help("One per line, as name: value. You can find the email by them later"),
        addresses("reply_to", "Replies go to", 1).help("Leave empty for the sender"),
        Field::new("attachments", "Attached files", Control::Files { accept: "" }).help(files_help(context)),
    ]);
    Form::new("send", "Send", fields)
}

/// The help of the files. A page cannot fill in a control for files, so they are gone when the form is shown again.
fn files_help(context: &Context<'_>) -> &'static str {
    if context.request.files.iter().any(|file| !file.file_name.is_empty()) {
        "Choose the files again: they were not kept. At most 10 files of 10 MB each"
    } else {
        "At most 10 files of 10 MB each"
    }
}

fn content_fields(template: Option<&TemplateChoice>) -> Vec<Field> {
    let Some(template) = template else {
        return vec![
            Field::text("subject", "Subject").required(),
            Field::new("text", "Text", Control::Area { rows: 8 })
                .help("Text, HTML, or both: recipients whose email program does not show HTML see the text"),
            Field::new("html", "HTML", Control::Code { rows: 8 }),
        ];
    };
    let subject = Field::text("subject", "Subject");
    let subject = match &template.subject {
        Some(own) => subject.help(format!("Leave empty for the template's: {own}")),
        None => subject.required(),
    };
    let mut fields = vec![Field::hidden("template.id", &template.id), subject];
    for variable in &template.variables {
        let control =
            if matches!(variable.r#type.as_str(), "string" | "") { Control::Text } else { Control::Json { rows: 2 } };
        let name = format!("template.variables.{}", variable.key);
        let mut field = Field::new(name, variable.key.clone(), control);
        if variable.r#type != "string" {
            field = field.help(format!("A value of type {}, as JSON", variable.r#type));
        }
        match &variable.fallback_value {
            Value::Null if variable.required => field = field.required(),
            Value::Null => {}
            fallback => {
                let text = fallback.as_str().map_or_else(|| fallback.to_string(), str::to_owned);
                field = field.help(format!("Default: {text}"));
            }
        }
        fields.push(field);
    }
    fields
}

pub(super) async fn send(context: &Context<'_>) -> Result<Outcome, Failure> {
    let template = read_template(context).await?;
    let mut body = form(context, template.as_ref(), "").read(context.form())?;
    let tags = read_tags(context.form().get("tags"))?;
    if !tags.is_empty() {
        body["tags"] = tags.into();
    }
    let files: Vec<_> =
        context.request.files.iter().filter(|file| file.field == "attachments").filter_map(attachment).collect();
    if !files.is_empty() {
        body["attachments"] = files.into();
    }
    let idempotency_key = form_key::request_key(context, &[body.to_string().as_bytes()]);
    let call = Call { idempotency_key, ..Call::new("send_email").json(body) };
    let answer: AcceptedEmail = context.read(&call).await?;
    if answer.warnings.is_empty() {
        return Ok(Outcome::done(email_path(&answer.id), "sent"));
    }
    let content = maud! {
        div.notice.warning role="status" {
            p { "The email was accepted, with a warning:" }
            ul { @for warning in &answer.warnings { li { (warning) } } }
        }
        p { a.button.primary href=(email_path(&answer.id)) { "Go to the email" } " " a.button href={ (LIST) "?" (filters_kept(context)) } { "Go to the list" } }
    };
    Ok(Outcome::once(Page::new("Email accepted", content).below(LIST, "Emails")))
}

/// The query of the list that shows emails to the first recipient.
fn filters_kept(context: &Context<'_>) -> String {
    let first = context.form().get("to").split(['\n', ',']).next().unwrap_or_default().trim();
    format!("to={}", encode(first))
}

/// Reads tags: a line `name: value` each.
fn read_tags(text: &str) -> Result<Map<String, Value>, Failure> {
    let mut tags = Map::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line
            .split_once([':', '='])
            .ok_or_else(|| Failure::field("tags", format!("“{line}” is not a tag; enter name: value")))?;
        tags.insert(name.trim().to_owned(), value.trim().into());
    }
    Ok(tags)
}

/// A file as the operation takes it; `None` for a control without a file.
fn attachment(file: &UploadedFile) -> Option<Value> {
    let name = file.file_name.rsplit(['/', '\\']).next().unwrap_or_default();
    (!name.is_empty())
        .then(|| json!({"name": name, "content_type": content_type(name), "data": STANDARD.encode(&file.content)}))
}

/// The media type of a file by its name.
fn content_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "svg" => "image/svg+xml",
        "txt" | "log" => "text/plain",
        "csv" => "text/csv",
        "html" | "htm" => "text/html",
        "ics" => "text/calendar",
        "vcf" => "text/vcard",
        "json" => "application/json",
        "xml" => "application/xml",
        "zip" => "application/zip",
        "doc" => "application/msword",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xls" => "application/vnd.ms-excel",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_lines() {
        let tags = read_tags("order: 1043\n\n flow=a:b ").unwrap();
        assert_eq!(Value::from(tags), json!({"order": "1043", "flow": "a:b"}));
        assert!(read_tags("order").unwrap_err().fields["tags"].contains("“order” is not a tag"));
    }

    #[test]
    fn files_become_attachments() {
        let file =
            |name: &str| UploadedFile { field: "attachments".into(), file_name: name.into(), content: "a".into() };
        assert_eq!(
            attachment(&file("C:\\x\\A.PDF")).unwrap(),
            json!({"name": "A.PDF", "content_type": "application/pdf", "data": "YQ=="})
        );
        assert_eq!(attachment(&file("")), None);
    }
}
