//! JSON schemas of tools, from those of the API: all that a model needs, in few tokens.
//!
//! The API checks every value, so bounds that a model rarely meets are left out, and a field that may be written in
//! several ways is shown in one.

use serde_json::{Map, Value, json};

use crate::operation_table::OperationTable;

/// How much of a schema is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaDetail {
    /// Longest description; a longer one ends at a sentence or a word.
    pub(crate) description_chars: usize,
    /// Levels of objects with their fields; deeper ones are `object` only.
    pub(crate) depth: usize,
    /// True if bounds, defaults and all ways to write a value are kept.
    pub(crate) is_whole: bool,
}

impl SchemaDetail {
    /// For tools that are always listed.
    pub(crate) const BRIEF: Self = Self { description_chars: 90, depth: 3, is_whole: false };
    /// For tools that a client asked for.
    pub(crate) const WHOLE: Self = Self { description_chars: 400, depth: 8, is_whole: true };
}

/// Shortens the schema of an input.
pub(crate) fn input(schema: &Value, table: &OperationTable, detail: SchemaDetail) -> Value {
    InputSchemas { table, detail }.shorten(schema, detail.depth)
}

struct InputSchemas<'a> {
    table: &'a OperationTable,
    detail: SchemaDetail,
}

impl InputSchemas<'_> {
    fn shorten(&self, schema: &Value, depth: usize) -> Value {
        let Some(fields) = self.table.resolve(schema).as_object() else { return json!({}) };
        let mut short = Map::new();
        for word in ["oneOf", "anyOf"] {
            if let Some(Value::Array(variants)) = fields.get(word) {
                short = self.alternatives(variants, depth);
            }
        }
        for part in fields.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            if let Value::Object(part) = self.shorten(part, depth) {
                merge(&mut short, part);
            }
        }
        if let Some(kind) = fields.get("type").map(without_null) {
            short.insert("type".into(), kind);
        }
        if let Some(text) = fields.get("description").and_then(Value::as_str) {
            short.insert("description".into(), self.description(text).into());
        }
        if let Some(Value::Array(values)) = fields.get("enum") {
            short.insert("enum".into(), values.iter().filter(|value| !value.is_null()).cloned().collect());
            short.remove("type");
        }
        self.keep_words(fields, &mut short);
        if let Some(items) = fields.get("items") {
            short.insert("items".into(), self.shorten(items, depth));
        }
        if let Some(values) = fields.get("additionalProperties").filter(|values| values.is_object()) {
            short.insert("additionalProperties".into(), self.shorten(values, depth));
        }
        if let Some(Value::Object(properties)) = fields.get("properties").filter(|_| depth > 0) {
            let shortened = properties.iter().map(|(name, one)| (name.clone(), self.shorten(one, depth - 1)));
            short.insert("properties".into(), Value::Object(shortened.collect()));
            if let Some(required) = fields.get("required") {
                short.insert("required".into(), required.clone());
            }
        }
        Value::Object(short)
    }

    fn keep_words(&self, fields: &Map<String, Value>, short: &mut Map<String, Value>) {
        let always = ["const"];
        let whole = ["default", "minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"];
        let whole = if self.detail.is_whole { &whole[..] } else { &[] };
        for word in always.iter().chain(whole) {
            if let Some(value) = fields.get(*word).filter(|value| !value.is_null()) {
                short.insert((*word).into(), value.clone());
            }
        }
        if let Some(format) = fields.get("format").filter(|format| *format == "date-time") {
            short.insert("format".into(), format.clone());
        }
    }

    /// A brief schema shows one way to write a value: a list rather than one entry, otherwise the shortest.
    fn alternatives(&self, variants: &[Value], depth: usize) -> Map<String, Value> {
        let variants = variants.iter().filter(|variant| variant.get("type") != Some(&json!("null")));
        let mut variants: Vec<Value> = variants.map(|variant| self.shorten(variant, depth)).collect();
        let has_constant = variants.iter().any(|variant| variant.get("const").is_some());
        if !self.detail.is_whole && !has_constant {
            let is_list = |one: &&Value| one["type"] == "array" && one["items"]["type"] == "string";
            let chosen = variants.iter().find(is_list).or(variants.iter().min_by_key(|one| one.to_string().len()));
            variants = chosen.cloned().into_iter().collect();
        }
        match variants.as_mut_slice() {
            [Value::Object(one)] => std::mem::take(one),
            _ => Map::from_iter([("anyOf".to_owned(), Value::Array(variants))]),
        }
    }

    /// The start of a description, without other spellings of a field.
    fn description(&self, text: &str) -> String {
        let text = match (text.find(" (also `"), text.rfind(')')) {
            (Some(start), Some(end)) if start < end => format!("{}{}", &text[..start], &text[end + 1..]),
            _ => text.to_owned(),
        };
        shortened(&text, self.detail.description_chars)
    }
}

/// The start of a text: whole sentences, or whole words, of at most some characters.
pub(crate) fn shortened(text: &str, chars_max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(chars_max) else { return text.to_owned() };
    let start = text.get(..end).unwrap_or_default();
    let cut = start.rfind(". ").or_else(|| start.rfind("; ")).or_else(|| start.rfind(": "));
    let cut = cut.filter(|cut| *cut >= chars_max / 3).or_else(|| start.rfind(' '));
    cut.and_then(|cut| start.get(..cut)).unwrap_or(start).trim_end_matches([',', ';', ':']).to_owned()
}

fn without_null(kind: &Value) -> Value {
    match kind {
        Value::Array(kinds) => {
            let kinds: Vec<&Value> = kinds.iter().filter(|kind| **kind != "null").collect();
            match kinds.as_slice() {
                [one] => (*one).clone(),
                _ => json!(kinds),
            }
        }
        one => one.clone(),
    }
}

fn merge(into: &mut Map<String, Value>, part: Map<String, Value>) {
    for (word, value) in part {
        match (into.get_mut(&word), value) {
            (Some(Value::Object(fields)), Value::Object(more)) => fields.extend(more),
            (Some(Value::Array(entries)), Value::Array(more)) => entries.extend(more),
            (_, value) => {
                into.insert(word, value);
            }
        }
    }
}

/// The schema of a response: names and types of its fields, down to some levels. Nothing is required, because what is
/// too long is left out of results, and foreign texts are fenced. A field that may be null has no type.
pub(crate) fn output(schema: &Value, table: &OperationTable, depth: usize) -> Value {
    let resolved = table.resolve(schema);
    let mut short = Map::new();
    let mut is_open = false;
    for word in ["allOf", "oneOf", "anyOf"] {
        for part in resolved.get(word).and_then(Value::as_array).into_iter().flatten() {
            match output(part, table, depth) {
                Value::Object(part) if part.get("type") == Some(&json!("null")) => is_open = true,
                Value::Object(part) => merge_types(&mut short, part),
                _ => {}
            }
        }
    }
    if let Some(kind) = resolved.get("type").filter(|kind| kind.is_string()) {
        short.insert("type".into(), kind.clone());
    }
    if let Some(items) = resolved.get("items").filter(|_| depth > 0) {
        let items = output(items, table, depth);
        if items.get("properties").is_some() {
            short.insert("items".into(), items);
        }
    }
    if let Some(Value::Object(properties)) = resolved.get("properties").filter(|_| depth > 0) {
        let named = properties.iter().filter(|(name, _)| *name != "warnings");
        let fields = Map::from_iter(named.map(|(name, one)| (name.clone(), output(one, table, depth - 1))));
        merge(&mut short, Map::from_iter([("properties".to_owned(), Value::Object(fields))]));
    }
    if is_open {
        short.remove("type");
    }
    Value::Object(short)
}

/// Alternatives may differ in their type: then the type is left open.
fn merge_types(into: &mut Map<String, Value>, part: Map<String, Value>) {
    if into.get("type").is_some_and(|kind| part.get("type").is_some_and(|other| other != kind)) {
        into.clear();
        return;
    }
    merge(into, part);
}
