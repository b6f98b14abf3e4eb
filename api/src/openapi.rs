//! Generates the OpenAPI 3.1 document from the operation table and the types' descriptions.
//!
//! `x-error-codes` at the root explains every error code, as the page does to which `error.doc_url` leads.

mod example;
mod responses;
pub mod sdk;
mod webhook_fields;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};

use httpd::response::{IntoResponse, Response};
use serde_json::Map;

use self::responses::SharedResponses;
use crate::access::role_table;
use crate::auth::cookie;
use crate::operation::{Operation, OperationHandler};
use crate::prelude::*;
use crate::version;

const OPENAPI_VERSION: &str = "3.1.0";

const ABOUT: &str = "Sends email. Bodies are JSON in UTF-8, uncompressed or compressed (`Content-Encoding: gzip` \
or `zstd`), nested at most 128 levels. Unknown fields are ignored and named in `warnings`. Every response carries \
`x-request-id`; every response to an API key carries `ratelimit-limit`, `ratelimit-remaining` and \
`ratelimit-reset`, unless the operator has switched the rate limit off. Every error is `{error: {message, code, \
details?, upgrade_url?, request_id, doc_url}}`; `x-error-codes` explains the codes. Fields and codes may be added \
at any time; breaking changes get a new `Service-Version`.";

/// Descriptions of the tags.
const NOUNS: &[(&str, &str)] = &[
    ("service", "The service itself"),
    ("emails", "Emails: send, list, show and track"),
    ("templates", "Versioned templates: subject, HTML and text with variables"),
    ("suppressions", "Addresses that receive no email"),
    ("category_opt_outs", "Addresses that receive no email of a category"),
    ("domains", "Sending domains"),
    ("api_keys", "API keys"),
    ("smtp_credentials", "SMTP credentials for message submission"),
    ("account", "The account, its plan and its usage"),
    ("users", "Users who can sign in"),
    ("auth", "Signing in and out"),
    ("logs", "The request log"),
    ("metrics", "Metrics over time"),
    ("webhooks", "Webhook endpoints that receive events"),
    ("events", "Product events, their counts, funnels and conversions"),
    ("visits", "Site visits and their sources"),
    ("affiliates", "Partners of the affiliate program and their links"),
    ("affiliate_campaigns", "The commission terms of partners"),
    ("affiliate_referrals", "People referred by partners"),
    ("affiliate_program", "The affiliate program's settings and administration"),
    ("affiliate_commissions", "Commissions of partners"),
    ("affiliate_payouts", "Payouts to partners"),
    ("affiliate_visits", "Visits and sign-ups by partner links"),
    ("portal", "Pages of the partner portal"),
    ("oauth", "The OAuth 2.1 authorization server"),
    ("grants", "What users have allowed apps to do"),
    ("approvals", "Requests that wait for a person's approval"),
    ("audit_log", "What credentials and users did"),
    ("received_emails", "Received emails"),
    ("automations", "Automations that run on events"),
    ("tracking", "Open and click tracking"),
    ("unsubscribe", "Unsubscribe pages"),
];

/// The document as a response.
#[derive(Debug)]
pub struct OpenApiDocument(Bytes);

impl IntoResponse for OpenApiDocument {
    fn describe(_: &mut Schemas) -> Value {
        json!({"type": "object", "description": "An OpenAPI 3.1 document"})
    }

    fn into_response(self) -> Result<Response> {
        Ok(Self::with_body(self.0))
    }
}

/// `GET /openapi.json`.
pub async fn get(state: State, _: NoInput) -> Result<OpenApiDocument> {
    Ok(OpenApiDocument(state.openapi()))
}

/// The document as JSON text.
pub fn render(operations: &[Operation], base_url: &str) -> String {
    serde_json::to_string_pretty(&document(operations, base_url)).unwrap_or_default() + "\n"
}

pub fn document(operations: &[Operation], base_url: &str) -> Value {
    let (mut schemas, mut shared) = (Schemas::default(), SharedResponses::default());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for operation in operations {
        let entry = describe_operation(operation, &mut schemas, &mut shared);
        paths.entry(operation.path).or_default().insert(operation.method.as_str().to_lowercase(), entry);
    }
    error_schema(&mut schemas);
    let mut schemas = schemas.into_value();
    let mut paths = json!(paths);
    responses::add_examples(&mut paths, &schemas);
    sdk::resolve_items_fields(&mut paths, &schemas);
    allow_null_in_requests(&mut paths, &mut schemas);
    let codes: Map<String, Value> = ErrorCode::ALL
        .iter()
        .map(|code| (code.name(), json!({"status": code.status, "description": code.when})))
        .collect();
    json!({
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "postrider",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
        },
        "servers": [{"url": base_url}],
        "tags": tags(operations),
        "paths": paths,
        "webhooks": webhooks::webhooks_section(&schemas),
        "components": {
            "schemas": schemas,
            "parameters": {"Service-Version": version::parameter()},
            "headers": responses::header_components(),
            "examples": responses::example_components(base_url),
            "responses": shared.into_value(),
            "securitySchemes": {
                "api_key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key: `rnl_…` (keys with the prefix `stx_` remain valid)",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": cookie::NAME,
                    "description": "A session; requests other than GET must also send its `x-csrf-token`. Operations \
                                    that API keys can call have the prefix `/api` for sessions",
                },
                "partner_session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": crate::portal::cookie::SECURE,
                    "description": "A partner's session in the partner portal",
                },
            },
        },
        "x-error-codes": codes,
    })
}

/// Optional request fields may also be null (`ObjectFields::value`), also those of objects inside a body. Objects that
/// responses contain, too, say themselves what may be null.
fn allow_null_in_requests(paths: &mut Value, schemas: &mut Value) {
    let mut shared = BTreeSet::new();
    let operations = paths.as_object_mut().into_iter().flatten().filter_map(|(_, path)| path.as_object_mut());
    let mut bodies: Vec<&mut Value> = Vec::new();
    for (_, operation) in operations.flatten() {
        collect_components(&operation["responses"], schemas, &mut shared);
        bodies.extend(operation.pointer_mut("/requestBody/content/application~1json/schema"));
    }
    let mut inside = BTreeSet::new();
    for body in bodies {
        let name = component_name(body).map(str::to_owned);
        let component = name.and_then(|name| schemas.get_mut(name));
        let object = component.unwrap_or(body);
        schema::allow_null_for_optional(object);
        let object = object.clone();
        collect_components(&object["properties"], schemas, &mut inside);
    }
    for name in inside.difference(&shared) {
        schemas.get_mut(name).into_iter().for_each(schema::allow_null_for_optional);
    }
}

fn component_name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

/// Collects the names of the components that a value refers to, directly or by another one.
fn collect_components(value: &Value, schemas: &Value, found: &mut BTreeSet<String>) {
    if let Some(name) = component_name(value)
        && found.insert(name.to_owned())
    {
        collect_components(&schemas[name], schemas, found);
    }
    match value {
        Value::Object(fields) => fields.values().for_each(|field| collect_components(field, schemas, found)),
        Value::Array(entries) => entries.iter().for_each(|entry| collect_components(entry, schemas, found)),
        _ => {}
    }
}

/// The tags in the order of the operation table.
fn tags(operations: &[Operation]) -> Value {
    let mut nouns: Vec<&str> = Vec::new();
    for operation in operations {
        if !nouns.contains(&operation.tag) {
            nouns.push(operation.tag);
        }
    }
    let description = |noun: &str| NOUNS.iter().find(|(known, _)| *known == noun).map(|(_, description)| *description);
    nouns
        .into_iter()
        .map(|noun| match description(noun) {
            Some(description) => json!({"name": noun, "description": description}),
            None => json!({"name": noun}),
        })
        .collect()
}

fn describe_operation(operation: &Operation, schemas: &mut Schemas, shared: &mut SharedResponses) -> Value {
    let request_spec = (operation.request_spec)(schemas);
    let mut response_schema = (operation.response_spec.schema)(schemas);
    if request_spec.body.is_some() && !matches!(operation.media, Media::Form | Media::Beacon | Media::Any) {
        schemas.add_optional_field(
            &mut response_schema,
            "warnings",
            &schema::list(json!({"type": "string"}), "Warnings, for example about ignored fields"),
        );
    }
    let mut entry = json!({
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": responses::operation_responses(operation, &request_spec, response_schema, shared),
    });
    let mut parameters = request_spec.parameters;
    parameters.push(json!({"$ref": "#/components/parameters/Service-Version"}));
    entry["parameters"] = Value::Array(parameters);
    if let Some(body) = request_spec.body {
        let may_be_none = [Media::Form, Media::OptionalJson, Media::Beacon, Media::Any];
        let required = !may_be_none.contains(&operation.media);
        let content: Map<String, Value> = operation
            .media
            .media_types()
            .iter()
            .map(|media_type| {
                let schema = if *media_type == "text/csv" { json!({"type": "string"}) } else { body.clone() };
                ((*media_type).to_owned(), json!({"schema": schema}))
            })
            .collect();
        entry["requestBody"] = json!({"required": required, "content": content});
    }
    entry["security"] = match operation.handler {
        // Portal pages use the partner's session, or show how to sign in.
        OperationHandler::Public(_) if operation.tag == "portal" => json!([{}, {"partner_session": []}]),
        OperationHandler::Public(_) => json!([]),
        OperationHandler::ApiKey(..) => json!([{"api_key": []}]),
        OperationHandler::ApiKeyOrSession(..) => json!([{"api_key": []}, {"session": []}]),
        OperationHandler::Session(..) | OperationHandler::Owner(_) => json!([{"session": []}]),
    };
    // Users also call operations that take a key only: the dashboard's pages send email.
    if !matches!(operation.handler, OperationHandler::Public(_)) {
        entry["x-role"] = json!(role_table::least_role(operation).word());
    }
    if let Some(sdk) = operation.sdk {
        entry["x-sdk"] = sdk::sdk_extension(operation, sdk, &entry);
    }
    if let Some(scope) = operation.scope() {
        entry["x-scope"] = json!(scope);
        entry["x-bound-keys"] = json!(operation.domain_scoped);
        let needs = match scope {
            ApiKeyScope::Full => "Requires an API key with full access",
            ApiKeyScope::Sending if operation.method == http::Method::GET || operation.path.contains('{') => {
                "A sending-only API key is sufficient for what it sent"
            }
            ApiKeyScope::Sending => "A sending-only API key is sufficient",
        };
        let bound = match operation.domain_scoped {
            true => "; a key restricted to a domain can access that domain's data.",
            false => "; the key must not be restricted to a domain.",
        };
        entry["description"] = json!(format!("{needs}{bound}"));
    }
    entry
}

fn error_schema(schemas: &mut Schemas) {
    let words: BTreeSet<&str> = ErrorCode::ALL.iter().map(|code| code.word).collect();
    let words: Vec<&str> = words.into_iter().collect();
    let error = schema::object_with(
        "The error",
        &["message", "code", "request_id", "doc_url"],
        [
            ("message", schema::string("The message for humans")),
            ("code", schema::string_enum(&words, "The error code for programs; codes may be added")),
            (
                "details",
                json!({"type": "object", "description": "Details of the error; `fields` maps field names to messages"}),
            ),
            ("upgrade_url", schema::string("The page to upgrade the account")),
            ("request_id", schema::string("The request's id in the request log")),
            ("doc_url", schema::string("The documentation of the code")),
        ],
    );
    schemas.component("Error", |_| schema::object("An error", [("error", error)]));
}
