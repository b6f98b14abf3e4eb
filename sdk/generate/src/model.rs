//! `Model`: what templates get. The README of this crate describes it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::case::{camel, pascal};
use crate::error::GenerateError;
use crate::error_classes::{self, APPROVAL_REQUIRED, BY_DETAILS, ClassByDetails, ErrorClass, RETRIED_STATUSES};
use crate::operations::{Operation, Operations};
use crate::schema::TypeRef;
use crate::types::{Field, Location, NamedType, TypeRegistry};
use crate::words::{Examples, Words};

#[derive(Debug, Serialize)]
pub struct Model {
    pub version: String,
    pub service_version: String,
    /// Resources without a parent.
    pub resources: Vec<Resource>,
    /// All methods in the order of the operation table.
    pub methods: Vec<Method>,
    /// All named types in the order of their names.
    pub types: Vec<NamedType>,
    pub webhook_events: Vec<EventType>,
    pub error_codes: Vec<ErrorName>,
    /// Classes of errors that are generated, parents before their children.
    pub error_classes: &'static [ErrorClass],
    /// Each code once.
    pub codes: BTreeMap<String, CodeEntry>,
    pub class_by_details: ClassByDetails,
    pub retried_statuses: &'static [u16],
}

/// The class of a code, and whether a call is repeated after it.
#[derive(Debug, Clone, Serialize)]
pub struct CodeEntry {
    pub class: &'static str,
    /// `always`, `safe` or `never`.
    pub retry: String,
}

/// Methods of one noun, for example `emails`.
#[derive(Debug, Clone, Serialize)]
pub struct Resource {
    /// The last part of the path in camelCase.
    pub name: String,
    pub path: Vec<String>,
    /// The path with dots.
    pub full_name: String,
    pub doc: String,
    pub methods: Vec<Method>,
    pub children: Vec<Resource>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Method {
    /// The operation's id.
    pub id: String,
    pub name: String,
    pub full_name: String,
    pub resource: String,
    pub command: String,
    pub http_method: String,
    pub path: String,
    pub summary: String,
    pub description: String,
    pub risk: String,
    /// Field of the answer with the items of a page.
    pub pages: Option<String>,
    pub item_type: Option<TypeRef>,
    pub idempotent: bool,
    pub retry: bool,
    pub takes_if_match: bool,
    pub streams: bool,
    pub path_parameters: Vec<PathParameter>,
    /// Name of the type of its PARAMS, if it has any.
    pub params: Option<String>,
    pub params_required: bool,
    pub fields: Vec<Field>,
    /// Fields of the body with the same value in each call. The caller does not give them.
    pub fixed_params: BTreeMap<String, String>,
    pub has_body: bool,
    pub body_media_types: Vec<String>,
    pub response: OperationResponse,
    pub errors: Vec<String>,
    pub scope: Value,
    pub domain_scoped: bool,
    pub example: Option<Value>,
}

#[derive(Debug, Clone, Serialize)]
pub struct PathParameter {
    /// The name in the path's template.
    pub name: String,
    pub doc: String,
    #[serde(rename = "type")]
    pub kind: TypeRef,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResponseKind {
    Json,
    Text,
    Bytes,
}

#[derive(Debug, Clone, Serialize)]
pub struct OperationResponse {
    pub kind: ResponseKind,
    pub media_type: String,
    /// The type of JSON.
    #[serde(rename = "type")]
    pub type_ref: Option<TypeRef>,
}

#[derive(Debug, Clone, Serialize)]
pub struct EventType {
    #[serde(rename = "type")]
    pub kind: String,
    /// `EmailDelivered`.
    pub type_name: String,
    /// The type of `data`: `EmailDeliveredData`.
    pub data_type_name: String,
    /// Fields of `data`.
    pub fields: Vec<Field>,
    pub example: Value,
}

#[derive(Debug, Clone, Serialize)]
pub struct ErrorName {
    pub name: String,
    pub code: String,
    pub status: u16,
    pub description: String,
    pub class: &'static str,
}

impl Model {
    pub fn build(operations: &Operations, words: &Words, examples: &Examples) -> Result<Self, GenerateError> {
        let mut registry = TypeRegistry::new(&operations.schemas, words);
        let bodies = operations.operations.iter().filter_map(|one| one.body.as_ref()?.schema.as_ref()?.component());
        registry.declare_components(&bodies.collect())?;
        let mut methods = Vec::new();
        for operation in &operations.operations {
            methods.push(method(operation, examples.get(&operation.id), &methods, &mut registry)?);
        }
        let mut events = Vec::new();
        for event in &operations.webhook_events {
            events.push(event_type(event, &mut registry)?);
        }
        let mut types = registry.finish()?;
        if let Some(event) = events.iter().find(|one| types.contains_key(&one.type_name)) {
            let text = format!("{} is the name of a webhook event and of another type", event.type_name);
            return Err(GenerateError::Model(text));
        }
        for method in &mut methods {
            if let Some(params) = &method.params {
                TypeRegistry::mark_named(&mut types, params, |one| &mut one.in_request);
            }
            if let Some(answer) = &method.response.type_ref {
                TypeRegistry::mark(&mut types, answer, |one| &mut one.in_response);
            }
            method.item_type = item_type(method, &types)?;
        }
        for event in &mut events {
            TypeRegistry::mark_named(&mut types, &event.data_type_name, |one| &mut one.in_event);
            event.fields = types.get(&event.data_type_name).map(|one| one.fields.clone()).unwrap_or_default();
        }
        // Components that only `allOf` of others refers to.
        types.retain(|_, one| one.in_request || one.in_response || one.in_event);
        let resources = resource_tree(&methods, &words.resources)?;
        let error_codes: Vec<ErrorName> = error_names(operations);
        Ok(Self {
            version: operations.version.clone(),
            service_version: operations.service_version.clone(),
            resources,
            methods,
            types: types.into_values().collect(),
            webhook_events: events,
            error_classes: error_classes::CLASSES,
            codes: code_entries(operations),
            class_by_details: BY_DETAILS,
            retried_statuses: RETRIED_STATUSES,
            error_codes,
        })
    }

    /// All resources, each before its children.
    pub fn all_resources(&self) -> Vec<&Resource> {
        fn collect<'a>(resources: &'a [Resource], all: &mut Vec<&'a Resource>) {
            for resource in resources {
                all.push(resource);
                collect(&resource.children, all);
            }
        }
        let mut all = Vec::new();
        collect(&self.resources, &mut all);
        all
    }
}

fn method<'a>(
    operation: &'a Operation,
    example: Option<&Value>,
    earlier: &[Method],
    registry: &mut TypeRegistry<'a>,
) -> Result<Method, GenerateError> {
    let (resource, name) = operation
        .name
        .rsplit_once('.')
        .ok_or_else(|| GenerateError::Model(format!("{} has no resource in its name", operation.id)))?;
    let base = pascal(&operation.id);
    let fields = fields_of(operation, &base, registry)?;
    let params = (!fields.is_empty()).then(|| format!("{base}Params"));
    if let Some(params) = &params {
        registry.declare_params(params, format!("Params of `{}`.", operation.name), fields.clone())?;
    }
    let mut path_parameters = Vec::new();
    for parameter in &operation.path_parameters {
        let field = registry.field(&parameter.name, &parameter.schema, true, &base)?;
        let doc = parameter.description.clone().unwrap_or(field.doc);
        path_parameters.push(PathParameter { name: parameter.name.clone(), doc, kind: field.kind });
    }
    let has_header = |wanted: &str| operation.headers.iter().any(|one| one.name.eq_ignore_ascii_case(wanted));
    Ok(Method {
        id: operation.id.clone(),
        name: name.to_owned(),
        full_name: operation.name.clone(),
        resource: resource.to_owned(),
        command: operation.command.clone(),
        http_method: operation.http_method.clone(),
        path: operation.path.clone(),
        summary: operation.summary.clone(),
        description: operation.description.clone().unwrap_or_default(),
        risk: operation.risk.clone(),
        pages: operation.pages.clone(),
        item_type: None,
        idempotent: operation.idempotent,
        retry: operation.retry,
        takes_if_match: has_header("if-match"),
        streams: operation.streams,
        path_parameters,
        params_required: fields.iter().any(|field| field.required),
        params,
        fields,
        fixed_params: operation.fixed.clone(),
        has_body: operation.body.is_some(),
        body_media_types: operation.body.as_ref().map(|body| body.media_types.clone()).unwrap_or_default(),
        response: match operation.fixed.is_empty() {
            true => answer(operation, &base, registry)?,
            false => method_of_action(operation, earlier)?.response.clone(),
        },
        errors: operation.errors.clone(),
        scope: operation.scope.clone(),
        domain_scoped: operation.domain_scoped,
        example: example.cloned(),
    })
}

/// The method whose operation an action calls with fixed fields. It comes before its actions.
fn method_of_action<'m>(action: &Operation, earlier: &'m [Method]) -> Result<&'m Method, GenerateError> {
    let calls_same =
        |one: &&Method| one.fixed_params.is_empty() && one.path == action.path && one.http_method == action.http_method;
    let found = earlier.iter().find(calls_same);
    found.ok_or_else(|| GenerateError::Model(format!("{} fixes fields, but no method before it has them", action.id)))
}

/// Fields of the body and of the query, required ones first in their order.
fn fields_of<'a>(
    operation: &'a Operation,
    base: &str,
    registry: &mut TypeRegistry<'a>,
) -> Result<Vec<Field>, GenerateError> {
    let mut fields = Vec::new();
    if let Some(schema) = operation.body.as_ref().and_then(|body| body.schema.as_ref()) {
        for field in registry.body_fields(schema, base)? {
            fields.push(Field { location: Some(Location::Body), ..field });
        }
    }
    for parameter in &operation.query_parameters {
        let field = registry.field(&parameter.name, &parameter.schema, parameter.required, base)?;
        let doc = parameter.description.clone().unwrap_or(field.doc);
        let explode = parameter.explode && matches!(field.kind, TypeRef::Array { .. });
        fields.push(Field { doc, location: Some(Location::Query), explode, ..field });
    }
    let mut known: BTreeSet<String> = operation.fixed.keys().map(|name| camel(name)).collect();
    if let Some(field) = fields.iter().find(|field| !known.insert(camel(&field.wire))) {
        return Err(GenerateError::Model(format!("{} has two params called {}", operation.id, field.wire)));
    }
    Ok(fields)
}

fn answer<'a>(
    operation: &'a Operation,
    base: &str,
    registry: &mut TypeRegistry<'a>,
) -> Result<OperationResponse, GenerateError> {
    let media_type = operation.response.media_type.clone();
    let kind = if media_type.starts_with("application/json") {
        ResponseKind::Json
    } else if media_type.starts_with("text/") {
        ResponseKind::Text
    } else {
        ResponseKind::Bytes
    };
    let type_ref = match &operation.response.schema {
        Some(schema) if kind == ResponseKind::Json => Some(registry.response(schema, &format!("{base}Response"))?),
        _ => None,
    };
    Ok(OperationResponse { kind, media_type, type_ref })
}

/// The type of the items of a list's pages.
fn item_type(method: &Method, types: &BTreeMap<String, NamedType>) -> Result<Option<TypeRef>, GenerateError> {
    let Some(pages) = &method.pages else { return Ok(None) };
    let fields = match &method.response.type_ref {
        Some(TypeRef::Ref { name }) => types.get(name).map(|one| &one.fields[..]),
        _ => None,
    };
    let field = fields.into_iter().flatten().find(|field| field.wire == *pages);
    match field.map(|field| &field.kind) {
        Some(TypeRef::Array { items }) => Ok(Some((**items).clone())),
        _ => Err(GenerateError::Model(format!("{} has no array called {pages}", method.id))),
    }
}

fn event_type<'a>(
    event: &'a crate::operations::WebhookEvent,
    registry: &mut TypeRegistry<'a>,
) -> Result<EventType, GenerateError> {
    let type_name = pascal(&event.kind);
    let properties = event.schema.properties.as_ref();
    let payload = properties.and_then(|all| all.0.iter().find(|(name, _)| name == "data"));
    let Some((_, payload)) = payload else {
        return Err(GenerateError::Model(format!("the event {} has no data", event.kind)));
    };
    let data_type_name = format!("{type_name}Data");
    registry.declare_event(&data_type_name, format!("`data` of `{}`.", event.kind), payload)?;
    Ok(EventType {
        kind: event.kind.clone(),
        type_name,
        data_type_name,
        fields: Vec::new(),
        example: event.example.clone(),
    })
}

fn error_names(operations: &Operations) -> Vec<ErrorName> {
    let codes = operations.error_codes.iter();
    codes
        .map(|(name, error)| ErrorName {
            name: name.clone(),
            code: error.code.clone(),
            status: error.status,
            description: error.description.clone(),
            class: error_classes::class_of(&error.code, error.status),
        })
        .collect()
}

fn code_entries(operations: &Operations) -> BTreeMap<String, CodeEntry> {
    let known = operations.error_codes.values().map(|error| {
        let class = error_classes::class_of(&error.code, error.status);
        (error.code.clone(), CodeEntry { class, retry: error.retry.clone() })
    });
    let (code, class) = APPROVAL_REQUIRED;
    known.chain([(code.to_owned(), CodeEntry { class, retry: "never".to_owned() })]).collect()
}

/// Puts methods under their resources. Resources and methods keep the order of the operations.
fn resource_tree(methods: &[Method], docs: &BTreeMap<String, String>) -> Result<Vec<Resource>, GenerateError> {
    let mut roots: Vec<Resource> = Vec::new();
    for method in methods {
        let parts: Vec<&str> = method.resource.split('.').collect();
        let mut level = &mut roots;
        for depth in 0..parts.len() {
            let full_name = parts[..=depth].join(".");
            let index = match level.iter().position(|one| one.full_name == full_name) {
                Some(index) => index,
                None => {
                    let doc = docs.get(&full_name).cloned().ok_or_else(|| {
                        GenerateError::Model(format!("words.json has no description of the resource {full_name}"))
                    })?;
                    level.push(Resource {
                        name: parts[depth].to_owned(),
                        path: parts[..=depth].iter().map(|part| (*part).to_owned()).collect(),
                        full_name,
                        doc,
                        methods: Vec::new(),
                        children: Vec::new(),
                    });
                    level.len() - 1
                }
            };
            if depth + 1 == parts.len() {
                level[index].methods.push(method.clone());
                break;
            }
            level = &mut level[index].children;
        }
    }
    Ok(roots)
}
