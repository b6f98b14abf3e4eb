//! JSON Schema as fields to read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::operation::ApiTable;
use crate::block::{DocField, FieldGroup};

/// Objects within objects are described to this depth; schemas are not recursive, so it is not reached.
const DEPTH_MAX: usize = 12;

#[derive(Debug)]
pub struct SchemaReader<'t> {
    table: &'t ApiTable,
    /// Objects that the page describes in a section of their own, to which fields link.
    pub shared: BTreeSet<&'t str>,
    /// Null is not named in requests, where each optional field may be null.
    is_request: bool,
}

/// A type in words.
#[derive(Debug, Default)]
struct TypeText {
    /// `string`, `array of strings`.
    singular: String,
    plural: String,
    limits: Vec<String>,
    groups: Vec<FieldGroup>,
}

impl TypeText {
    fn plain(name: &str) -> Self {
        Self { singular: name.to_owned(), plural: format!("{name}s"), ..Self::default() }
    }
}

impl<'t> SchemaReader<'t> {
    /// A reader without shared objects.
    pub const fn new(table: &'t ApiTable) -> Self {
        Self { table, shared: BTreeSet::new(), is_request: false }
    }

    /// Finds the objects that several of these schemas contain. The schemas themselves are not among them.
    pub fn sharing(table: &'t ApiTable, schemas: &[&'t Value]) -> Self {
        let mut uses = BTreeMap::new();
        for outer in schemas.iter().flat_map(|schema| outer_parts(table, schema)) {
            count_references(table, outer, &mut uses);
        }
        let is_object = |name: &&str| table.schemas.get(*name).is_some_and(|schema| schema.get("enum").is_none());
        let shared = uses.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).filter(is_object).collect();
        Self { table, shared, is_request: false }
    }

    /// The fields of a request's schema.
    pub fn request_groups(&mut self, schema: &Value) -> Vec<FieldGroup> {
        self.is_request = true;
        let groups = self.outer_groups(schema);
        self.is_request = false;
        groups
    }

    /// The fields of a schema whose own name is not linked.
    pub fn outer_groups(&self, schema: &Value) -> Vec<FieldGroup> {
        match outer_parts(self.table, schema).as_slice() {
            [outer] => self.type_text(outer, 0).groups,
            parts => self.combined(parts, 0).groups,
        }
    }

    /// A parameter or another schema with a name.
    pub fn field(&self, name: &str, schema: &Value, description: &str, required: bool) -> DocField {
        self.field_at(name, schema, Some(description), required, 0)
    }

    fn field_at(
        &self,
        name: &str,
        schema: &Value,
        description: Option<&str>,
        required: bool,
        depth: usize,
    ) -> DocField {
        let text = self.type_text(schema, depth);
        let described = schema["description"].as_str();
        let referenced = || self.table.referenced(schema).and_then(|(_, schema)| schema["description"].as_str());
        let description = description.or(described).or_else(referenced).unwrap_or_default();
        let is_nullable = !self.is_request && is_nullable(schema);
        let kind = if is_nullable { format!("{} or null", text.singular) } else { text.singular };
        DocField {
            name: name.to_owned(),
            kind,
            required,
            limits: text.limits,
            description: description.to_owned(),
            groups: text.groups,
        }
    }

    fn type_text(&self, schema: &Value, depth: usize) -> TypeText {
        if depth > DEPTH_MAX {
            return TypeText::plain("object");
        }
        if let Some((name, referenced)) = self.table.referenced(schema) {
            if !self.shared.contains(name) {
                return self.type_text(referenced, depth);
            }
            let link = format!("[{name}](#{})", object_anchor(name));
            return TypeText { singular: link.clone(), plural: format!("{link} objects"), ..TypeText::default() };
        }
        if let Some(parts) = schema["allOf"].as_array() {
            return self.combined(&parts.iter().collect::<Vec<_>>(), depth);
        }
        if let Some(variants) = schema["oneOf"].as_array().or_else(|| schema["anyOf"].as_array()) {
            return self.union(variants, depth);
        }
        let mut text = match type_name(schema) {
            "array" => self.array(&schema["items"], depth),
            "object" => self.object(schema, depth),
            "any" => TypeText { singular: "any value".into(), plural: "values".into(), ..TypeText::default() },
            name => TypeText::plain(name),
        };
        text.limits.splice(0..0, limits(schema));
        text
    }

    fn array(&self, items: &Value, depth: usize) -> TypeText {
        let inner = self.type_text(items, depth + 1);
        let name = if items.as_object().is_none_or(Map::is_empty) {
            "array".into()
        } else {
            format!("array of {}", inner.plural)
        };
        TypeText {
            plural: name.replacen("array", "arrays", 1),
            singular: name,
            limits: inner.limits,
            groups: inner.groups,
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> TypeText {
        let required: BTreeSet<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let properties = schema["properties"].as_object();
        let fields: Vec<DocField> = properties
            .into_iter()
            .flatten()
            .map(|(name, property)| self.field_at(name, property, None, required.contains(name.as_str()), depth + 1))
            .collect();
        let mut text = TypeText::plain("object");
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            let inner = self.type_text(values, depth + 1);
            text.singular = format!("object of {}", inner.plural);
            text.plural = format!("objects of {}", inner.plural);
        }
        if !fields.is_empty() {
            text.groups.push(FieldGroup { label: None, fields });
        }
        text
    }

    /// `allOf`: the fields of all parts.
    fn combined(&self, parts: &[&Value], depth: usize) -> TypeText {
        let mut text = TypeText::plain("object");
        let described = parts.iter().map(|part| self.type_text(part, depth)).collect::<Vec<_>>();
        let is_one =
            described.iter().filter(|part| part.singular.starts_with('[') || !part.groups.is_empty()).count() == 1;
        for part in described {
            text.limits.extend(part.limits);
            if part.singular.starts_with('[') {
                if is_one {
                    text.singular = part.singular;
                    text.plural = part.plural;
                    continue;
                }
                text.groups.push(FieldGroup {
                    label: Some(format!("All fields of {}, and:", part.singular)),
                    fields: Vec::new(),
                });
            } else if let [FieldGroup { label: None, fields: before }] = text.groups.as_mut_slice() {
                before.extend(part.groups.into_iter().flat_map(|group| group.fields));
            } else {
                text.groups.extend(part.groups);
            }
        }
        text
    }

    fn union(&self, variants: &[Value], depth: usize) -> TypeText {
        let variants: Vec<&Value> = variants.iter().filter(|variant| variant["type"] != "null").collect();
        let objects = variants.iter().filter(|variant| type_name(variant) == "object").count();
        let mut text = TypeText::default();
        let (mut names, mut plurals) = (Vec::new(), Vec::new());
        for variant in &variants {
            let part = self.type_text(variant, depth);
            for limit in part.limits {
                let limit = if variants.len() > 1 { format!("{}: {limit}", part.singular) } else { limit };
                text.limits.push(limit);
            }
            if !names.contains(&part.singular) {
                names.push(part.singular);
                plurals.push(part.plural);
            }
            let label = (objects > 1).then(|| variant["description"].as_str().map(str::to_owned)).flatten();
            text.groups.extend(
                part.groups.into_iter().map(|group| FieldGroup { label: group.label.or(label.clone()), ..group }),
            );
        }
        text.singular = names.join(" or ");
        text.plural = plurals.join(" or ");
        text
    }
}

/// The anchor of a shared object's section.
pub fn object_anchor(name: &str) -> String {
    let mut anchor = String::new();
    for one in name.chars() {
        if one.is_ascii_uppercase() && !anchor.is_empty() {
            anchor.push('-');
        }
        anchor.push(one.to_ascii_lowercase());
    }
    anchor + "-object"
}

/// A schema without the references and the `allOf` around it.
fn outer_parts<'s>(table: &'s ApiTable, schema: &'s Value) -> Vec<&'s Value> {
    let outer = table.referenced(schema).map_or(schema, |(_, schema)| schema);
    match outer["allOf"].as_array() {
        Some(parts) => parts.iter().map(|part| table.referenced(part).map_or(part, |(_, schema)| schema)).collect(),
        None => vec![outer],
    }
}

fn count_references<'t>(table: &'t ApiTable, schema: &'t Value, uses: &mut BTreeMap<&'t str, usize>) {
    if let Some((name, referenced)) = table.referenced(schema) {
        let count = uses.entry(name).or_default();
        *count += 1;
        if *count == 1 {
            count_references(table, referenced, uses);
        }
        return;
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|field| count_references(table, field, uses)),
        Value::Array(entries) => entries.iter().for_each(|entry| count_references(table, entry, uses)),
        _ => {}
    }
}

fn type_name(schema: &Value) -> &str {
    let of_list = || schema["type"].as_array()?.iter().filter_map(Value::as_str).find(|name| *name != "null");
    let by_value = || match schema.get("const").or_else(|| schema["enum"].get(0))? {
        Value::String(_) => Some("string"),
        Value::Bool(_) => Some("boolean"),
        Value::Number(_) => Some("number"),
        _ => None,
    };
    let by_fields = || schema.get("properties").map(|_| "object");
    schema["type"].as_str().or_else(of_list).or_else(by_value).or_else(by_fields).unwrap_or("any")
}

fn is_nullable(schema: &Value) -> bool {
    let null = Value::from("null");
    let of_type = schema["type"].as_array().is_some_and(|names| names.contains(&null));
    of_type
        || ["oneOf", "anyOf"]
            .iter()
            .any(|key| schema[*key].as_array().into_iter().flatten().any(|one| one["type"] == null))
}

fn limits(schema: &Value) -> Vec<String> {
    let mut limits = Vec::new();
    let code = |value: &Value| format!("`{}`", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<String> = values.iter().filter(|value| !value.is_null()).map(code).collect();
        limits.push(format!("one of {}", values.join(", ")));
    }
    if let Some(value) = schema.get("const") {
        limits.push(format!("always {}", code(value)));
    }
    match schema["format"].as_str() {
        Some("date-time") => limits.push("date and time in RFC 3339".into()),
        Some("date") => limits.push("date, `YYYY-MM-DD`".into()),
        Some("email") => limits.push("email address".into()),
        Some(format) => limits.push(format!("format `{format}`")),
        None => {}
    }
    if schema["contentEncoding"] == "base64" {
        limits.push("base64".into());
    }
    let ranges = [
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", "character"),
        ("minItems", "maxItems", "entry"),
        ("", "maxProperties", "field"),
    ];
    limits.extend(ranges.iter().filter_map(|(min, max, unit)| range(&schema[*min], &schema[*max], unit)));
    if let Some(pattern) = schema["pattern"].as_str() {
        limits.push(if pattern == "\\S" { "not blank".into() } else { format!("pattern `{pattern}`") });
    }
    if let Some(default) = schema.get("default") {
        limits.push(format!("default {}", code(default)));
    }
    limits
}

/// `1 to 100`, `at most 255 characters`. A minimum of 0 says nothing.
fn range(min: &Value, max: &Value, unit: &str) -> Option<String> {
    let (min, max) = (min.as_i64().filter(|min| *min != 0), max.as_u64());
    let unit_of = |count: u64| match (unit, count) {
        ("", _) => String::new(),
        ("entry", 1) => " entry".into(),
        ("entry", _) => " entries".into(),
        (unit, 1) => format!(" {unit}"),
        (unit, _) => format!(" {unit}s"),
    };
    match (min, max) {
        (Some(min), Some(max)) => Some(format!("{min} to {max}{}", unit_of(max))),
        (Some(1), None) if unit == "character" => Some("not empty".into()),
        (Some(min), None) => Some(format!("at least {min}{}", unit_of(min.unsigned_abs()))),
        (None, Some(max)) => Some(format!("at most {max}{}", unit_of(max))),
        (None, None) => None,
    }
}

/// An example value of a schema, for answers that were not recorded.
pub fn example_value(table: &ApiTable, schema: &Value) -> Value {
    let schema = table.referenced(schema).map_or(schema, |(_, schema)| schema);
    if let Some(example) = schema["examples"].get(0).or_else(|| schema.get("example")).or_else(|| schema.get("const")) {
        return example.clone();
    }
    if let Some(value) = schema["enum"].get(0) {
        return value.clone();
    }
    if let Some(parts) = schema["allOf"].as_array() {
        let mut fields = Map::new();
        for part in parts {
            if let Value::Object(more) = example_value(table, part) {
                fields.extend(more);
            }
        }
        return Value::Object(fields);
    }
    if let Some(variant) = schema["oneOf"].get(0) {
        return example_value(table, variant);
    }
    match type_name(schema) {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, property)| (name.clone(), example_field(table, name, property))).collect()
        }
        "array" => json!([example_value(table, &schema["items"])]),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        "boolean" => json!(true),
        "string" if schema["format"] == "date-time" => json!("2026-01-01T10:00:00.812Z"),
        "string" if schema["format"] == "date" => json!("2026-01-01"),
        "string" => json!("…"),
        _ => Value::Null,
    }
}

/// The example of a field; of an id, if its description names the prefix.
fn example_field(table: &ApiTable, name: &str, schema: &Value) -> Value {
    let description = schema["description"].as_str().unwrap_or_default();
    let prefix = description.split('`').find(|part| part.ends_with("_…") && !part.contains(' '));
    match prefix {
        Some(prefix) if type_name(schema) == "string" => json!(prefix.replace('…', "01K9ZQ4Y8M3T5V7W2X6B0C1D9E")),
        _ if schema["type"] == "string" && (name == "email" || schema["format"] == "email") => {
            json!("grace@example.net")
        }
        _ if schema["type"] == "string" && name == "url" => json!("https://example.com/"),
        _ if schema["type"] == "string" && matches!(name, "domain" | "name") => json!("example.com"),
        _ => example_value(table, schema),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> &'static ApiTable {
        ApiTable::load()
    }

    #[test]
    fn types_are_told_in_words() {
        let reader = SchemaReader::new(table());
        let kind = |schema: Value| {
            let field = reader.field("x", &schema, "", false);
            (field.kind, field.limits.join("; "))
        };
        assert_eq!(
            kind(json!({"type": ["string", "null"], "maxLength": 9})),
            ("string or null".into(), "at most 9 characters".into())
        );
        assert_eq!(
            kind(json!({"type": "array", "items": {"type": "object"}, "maxItems": 1})),
            ("array of objects".into(), "at most 1 entry".into())
        );
        let union = json!({"oneOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]});
        assert_eq!(kind(union), ("string or array of strings or null".into(), "string: not empty".into()));
        assert_eq!(kind(json!({"type": "object", "additionalProperties": {"type": "string"}})).0, "object of strings");
        assert_eq!(
            kind(json!({"type": "integer", "minimum": 0, "maximum": 5, "default": 2})).1,
            "at most 5; default `2`"
        );
        assert_eq!(kind(json!({})).0, "any value");
    }

    #[test]
    fn objects_of_several_answers_are_shared() {
        let emails: Vec<&Value> = table()
            .operations
            .iter()
            .filter(|one| one.resource == "domains")
            .map(|one| one.response.schema())
            .collect();
        let reader = SchemaReader::sharing(table(), &emails);
        assert!(reader.shared.contains("Domain"), "{:?}", reader.shared);
        let groups = reader.outer_groups(emails[0]);
        assert!(groups[0].fields.iter().any(|field| field.kind.contains("(#domain-object)")), "{groups:?}");
    }
}
