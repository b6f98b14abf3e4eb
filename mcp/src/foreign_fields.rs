//! The fields of responses that the server or the account itself wrote.
//!
//! All other texts are foreign: whoever adds a field to the API need not think of models. Values of a fixed set and times
//! are known by their schema.

/// Fields of any object whose text is always our own.
const OWN_EVERYWHERE: &[&str] = &["next_cursor", "warnings", "code", "upgrade_url"];

/// Schemas of the table, and their fields whose text is our own; `*` for all of them. An operation's own schema is named
/// `@` and its id.
const OWN: &[(&str, &[&str])] = &[
    ("Account", &["*"]),
    ("ApiKey", &["*"]),
    ("SmtpCredential", &["*"]),
    ("LoggedRequest", &["operation", "method", "error_code"]),
    ("Domain", &["*"]),
    ("DomainRecord", &["name", "value", "error"]),
    ("DomainClaim", &["*"]),
    ("DnsChange", &["reason"]),
    ("ConnectDns", &["url"]),
    ("Email", &["last_event"]),
    ("Recipient", &["waits_for.text"]),
    ("EmailEvent", &["type"]),
    ("Attempt", &["phase", "version", "cipher"]),
    ("BatchSent", &["message"]),
    ("SuppressionsAdded", &["message"]),
    ("SuppressionsChecked", &["message"]),
    ("Suppression", &["note"]),
    ("CategoryOptOut", &["category_label"]),
    ("Template", &["*"]),
    ("TemplateVariable", &["*"]),
    ("TemplateVersion", &["*"]),
    ("TemplatePreview", &["*"]),
    ("@get_template_version", &["*"]),
    ("Automation", &["*"]),
    ("AutomationTrigger", &["*"]),
    ("AutomationCondition", &["*"]),
    ("AutomationStep", &["*"]),
    ("Webhook", &["*"]),
    ("AffiliateCampaign", &["*"]),
];

/// Foreign fields whose text is fenced even if it is one word.
const FREE_TEXT: &[&str] =
    &["subject", "text", "html", "stripped_text", "response", "transcript", "diagnostic", "response_body", "filename"];

/// Where a text comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextOrigin {
    Own,
    /// Others wrote it, and it may be a word.
    Foreign,
    /// Others wrote it, as a text.
    ForeignText,
}

/// The origin of a text in a field of a schema. `path` is the field with those around it in the same schema, joined by
/// dots.
pub(crate) fn origin(schema: &str, path: &str) -> TextOrigin {
    let field = path.rsplit('.').next().unwrap_or(path);
    let own = OWN.iter().find(|(name, _)| *name == schema).map_or(&[][..], |(_, fields)| fields);
    let is_own = own.iter().any(|one| *one == "*" || *one == field || *one == path);
    match is_own || OWN_EVERYWHERE.contains(&field) {
        true => TextOrigin::Own,
        false if FREE_TEXT.contains(&field) => TextOrigin::ForeignText,
        false => TextOrigin::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation_table::OperationTable;

    #[test]
    fn every_named_schema_exists() {
        let table = OperationTable::load();
        for (name, fields) in OWN {
            let operation = name.strip_prefix('@');
            let exists = match operation {
                Some(id) => table.operations.iter().any(|operation| operation.id == id),
                None => table.schemas.contains_key(*name),
            };
            assert!(exists, "{name}");
            let text = match operation {
                Some(_) => continue,
                None => table.schemas[*name].to_string(),
            };
            for field in fields.iter().filter(|field| **field != "*") {
                let last = field.rsplit('.').next().unwrap();
                assert!(text.contains(&format!("\"{last}\"")), "{name}.{field}");
            }
        }
    }

    #[test]
    fn what_strangers_write_is_foreign() {
        for (schema, path) in [
            ("ReceivedEmailDetail", "subject"),
            ("ReceivedEmailDetail", "html"),
            ("ReceivedEmail", "attachments.filename"),
            ("Attempt", "transcript"),
            ("Recipient", "last_response.text"),
            ("Suppression", "detail.diagnostic"),
        ] {
            assert_eq!(origin(schema, path), TextOrigin::ForeignText, "{schema}.{path}");
        }
        for (schema, path) in [
            ("ReceivedEmail", "from"),
            ("ProductEvent", "data.anything"),
            ("Affiliate", "company"),
            ("DomainRecord", "found"),
            ("Email", "bounce_reason"),
            ("AddedLater", "field"),
        ] {
            assert_eq!(origin(schema, path), TextOrigin::Foreign, "{schema}.{path}");
        }
        assert_eq!(origin("Template", "html"), TextOrigin::Own);
        assert_eq!(origin("Recipient", "waits_for.text"), TextOrigin::Own);
    }
}
