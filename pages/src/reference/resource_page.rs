//! The page of a resource with all its operations.

use serde_json::Value;

use super::languages::{examples, json_block};
use super::operation::{ApiTable, KeyScope, Operation, Parameter, RequestBody, anchor, name_placeholders};
use super::schema::{SchemaReader, example_value, object_anchor};
use super::{page_path, words};
use crate::block::{Block, CodeBlock, DocField, DocPage, FieldGroup, Section};
use crate::highlight::CodeLanguage;

const CURSOR_PARAMETERS: &[&str] = &["limit", "cursor"];

/// Writes the page of a top resource.
pub fn page(table: &ApiTable, resource: &str) -> DocPage {
    let operations: Vec<&Operation> = table.operations.iter().filter(|one| one.top_resource() == resource).collect();
    let bodies = operations.iter().filter_map(|operation| operation.body.as_ref()).map(RequestBody::schema);
    let schemas: Vec<&Value> = operations.iter().map(|operation| operation.response.schema()).chain(bodies).collect();
    let mut reader = SchemaReader::sharing(table, &schemas);
    let mut sections: Vec<Section> =
        operations.iter().map(|operation| operation_section(table, &mut reader, operation)).collect();
    sections.extend(reader.shared.iter().filter_map(|name| object_section(table, &reader, name)));
    let lead = table.resource_texts.get(resource).cloned().unwrap_or_default();
    DocPage { slug: words::resource_slug(resource), title: words::resource_title(resource), lead, sections }
}

fn operation_section(table: &ApiTable, reader: &mut SchemaReader<'_>, operation: &Operation) -> Section {
    let mut prose = vec![Block::Endpoint { method: operation.http_method.clone(), path: operation.path.clone() }];
    if let Some(description) = operation.description.as_deref().map(own_description).filter(|text| !text.is_empty()) {
        prose.push(Block::Text(description.to_owned()));
    }
    prose.push(Block::Facts(facts(operation)));
    prose.extend(parameter_block(reader, "Path parameters", &operation.path_parameters));
    prose.extend(parameter_block(reader, "Query parameters", &operation.query_parameters));
    if let Some(body) = &operation.body {
        let groups = reader.request_groups(body.schema());
        let media_types: Vec<String> = body.media_types.iter().map(|name| format!("`{name}`")).collect();
        if groups.is_empty() {
            prose.push(Block::Heading("Body".into()));
            prose.push(Block::Text(format!("{}.", media_types.join(" or "))));
        } else {
            let title =
                if media_types.len() > 1 { format!("Body: {}", media_types.join(" or ")) } else { "Body".into() };
            prose.push(Block::Fields { title, groups });
        }
    }
    prose.extend(parameter_block(reader, "Headers", &operation.headers));
    prose.extend(response_blocks(reader, operation));
    prose.push(Block::Heading("Errors".into()));
    prose.push(Block::Text(error_links(table, &operation.errors)));
    Section {
        id: anchor(operation),
        title: operation.summary.clone(),
        short_title: Some(short_summary(&operation.summary).to_owned()),
        prose,
        aside: aside(table, operation),
    }
}

/// The summary up to the first comma, for navigation and tables.
pub(crate) fn short_summary(summary: &str) -> &str {
    summary.split([',', ';', '(', ':']).next().unwrap_or(summary).trim_end()
}

/// The description without the sentence about keys, which the facts tell.
fn own_description(description: &str) -> &str {
    let is_about_keys =
        |text: &str| text.starts_with("Requires an API key") || text.starts_with("A sending-only API key");
    if is_about_keys(description) {
        // More text may follow the sentence.
        return description.split_once(". ").map_or("", |(_, rest)| rest);
    }
    description
}

fn facts(operation: &Operation) -> Vec<(String, String)> {
    let sent_only = operation.description.as_deref().is_some_and(|text| text.contains("sufficient for what it sent"));
    let scope = match operation.scope {
        KeyScope::Sending if sent_only => "`full`; or `sending`, for what the key sent",
        KeyScope::Sending => "`sending` or `full`",
        KeyScope::Full => "`full`",
    };
    let domain = if operation.domain_scoped { "allowed, for their domain" } else { "not allowed" };
    let mut facts = vec![
        ("SDK".to_owned(), format!("`{}`", operation.name)),
        ("CLI".to_owned(), format!("`postrider {}`", operation.command)),
        ("Key scope".to_owned(), scope.to_owned()),
        ("Domain keys".to_owned(), domain.to_owned()),
    ];
    if operation.pages.is_some() {
        facts.push(("Paging".into(), "by [cursor](/docs#paging)".into()));
    }
    if operation.idempotent {
        facts.push(("Retry".into(), "safe with an [`Idempotency-Key`](/docs#idempotency)".into()));
    } else if operation.retry && operation.http_method != "GET" {
        facts.push(("Retry".into(), "safe: a repeated call has the same effect".into()));
    }
    facts
}

fn parameter_block(reader: &SchemaReader<'_>, title: &str, parameters: &[Parameter]) -> Option<Block> {
    let fields: Vec<DocField> = parameters.iter().map(|parameter| parameter_field(reader, parameter)).collect();
    let groups = vec![FieldGroup { label: None, fields }];
    (!parameters.is_empty()).then(|| Block::Fields { title: title.into(), groups })
}

fn parameter_field(reader: &SchemaReader<'_>, parameter: &Parameter) -> DocField {
    let is_cursor = CURSOR_PARAMETERS.contains(&parameter.name.as_str());
    let mut field = reader.field(&parameter.name, &parameter.schema, &parameter.description, parameter.required);
    if !is_cursor && parameter.schema["type"] == "array" {
        field.limits.push(if parameter.explode == Some(false) {
            "separated by commas".into()
        } else {
            "may be repeated".into()
        });
    }
    field
}

fn response_blocks(reader: &SchemaReader<'_>, operation: &Operation) -> Vec<Block> {
    let response = &operation.response;
    if response.media_type != "application/json" {
        let text = format!("Status {}, `{}`.", response.status, response.media_type);
        return vec![Block::Heading("Response".into()), Block::Text(text)];
    }
    let groups = reader.outer_groups(response.schema());
    let mut blocks = vec![Block::Fields { title: "Response".into(), groups }];
    if operation.streams {
        blocks.push(Block::Text(
            "With `Accept: text/event-stream`, it sends server-sent events until the connection ends.".into(),
        ));
    }
    blocks
}

fn error_links(table: &ApiTable, names: &[String]) -> String {
    let mut links: Vec<(u64, String)> = names
        .iter()
        .filter_map(|name| {
            let error = table.error_codes.get(name)?;
            let (status, code) = (error["status"].as_u64()?, error["code"].as_str()?);
            Some((status, format!("[`{status} {code}`]({}#{name})", page_path("errors"))))
        })
        .collect();
    links.sort_by_key(|(status, _)| *status);
    links.into_iter().map(|(_, link)| link).collect::<Vec<_>>().join(" ")
}

fn aside(table: &ApiTable, operation: &Operation) -> Vec<Block> {
    let mut aside = Vec::new();
    if let Some(snippets) = table.snippets.get(&operation.id) {
        aside.push(examples("Request", |language| {
            snippets.get(language.key).map(|code| name_placeholders(code)).unwrap_or_default()
        }));
    }
    let title = format!("Response · {}", operation.response.status);
    match table.answers.get(&operation.id) {
        Some(Value::String(text)) if operation.response.media_type != "application/json" => {
            aside.push(Block::Code(CodeBlock {
                title,
                language: CodeLanguage::Text,
                text: text.trim_end().to_owned(),
            }));
        }
        Some(answer) => aside.push(json_block(&title, answer)),
        None if operation.response.media_type == "application/json" => {
            aside.push(json_block(&title, &example_value(table, operation.response.schema())));
        }
        None => {}
    }
    aside
}

fn object_section(table: &ApiTable, reader: &SchemaReader<'_>, name: &str) -> Option<Section> {
    let schema = table.schemas.get(name)?;
    let mut prose = Vec::new();
    if let Some(description) = schema["description"].as_str() {
        prose.push(Block::Text(format!("{}.", description.trim_end_matches('.'))));
    }
    prose.push(Block::Fields { title: "Fields".into(), groups: reader.outer_groups(schema) });
    Some(Section {
        id: object_anchor(name),
        title: format!("{name} object"),
        short_title: None,
        prose,
        aside: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_emails_has_its_operations_and_objects() {
        let table = ApiTable::load();
        let page = page(table, "emails");
        let ids: Vec<&str> = page.sections.iter().map(|section| section.id.as_str()).collect();
        assert!(ids.contains(&"send-email") && ids.contains(&"list-email-attempts"), "{ids:?}");
        let send = page.sections.iter().find(|section| section.id == "send-email").unwrap();
        let fields = send.prose.iter().find_map(|block| match block {
            Block::Fields { title, groups } if title == "Body" => Some(&groups[0].fields),
            _ => None,
        });
        let fields = fields.unwrap();
        let to = fields.iter().find(|field| field.name == "to").unwrap();
        assert!(to.required);
        assert_eq!(to.kind, "string or array of strings");
        let attachments = fields.iter().find(|field| field.name == "attachments").unwrap();
        assert_eq!(attachments.kind, "array of objects");
        assert!(attachments.groups[0].fields.iter().any(|field| field.name == "content_id"));
    }
}
