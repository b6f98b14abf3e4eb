//! Walks the value of a response along its schema: fences foreign texts, and withholds secrets.

use serde_json::{Map, Value};

use crate::foreign_fields::{TextOrigin, origin};
use crate::foreign_text::Fence;
use crate::operation_table::{Operation, OperationTable};
use crate::secret_fields::SECRET_FIELDS;

/// Stands for a secret. No operation that is offered returns one; this holds if a field is added without a thought.
const WITHHELD: &str = "[withheld]";

/// Fences the foreign texts of an operation's response.
pub fn fence_response(value: Value, operation: &Operation, table: &OperationTable, fence: &mut Fence) -> Value {
    let top = format!("@{}", operation.id);
    let place = SchemaPlace { schema: &top, path: String::new() };
    let schemas = match &operation.response.schema {
        Some(schema) => expand(schema, &place, table),
        None => Vec::new(),
    };
    ResponseWalk { table, fence }.value(value, &schemas)
}

/// Fences every text of a value.
pub(crate) fn fence_all(value: Value, table: &OperationTable, fence: &mut Fence) -> Value {
    ResponseWalk { table, fence }.value(value, &[])
}

/// A place in a named schema.
#[derive(Debug, Clone)]
struct SchemaPlace<'a> {
    schema: &'a str,
    path: String,
}

type Alternatives<'a> = Vec<(&'a Value, SchemaPlace<'a>)>;

struct ResponseWalk<'a> {
    table: &'a OperationTable,
    fence: &'a mut Fence,
}

impl<'a> ResponseWalk<'a> {
    fn value(&mut self, value: Value, schemas: &[(&'a Value, SchemaPlace<'a>)]) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text, schemas)),
            Value::Array(values) => {
                let items: Alternatives<'a> = schemas
                    .iter()
                    .filter_map(|(schema, place)| Some((schema.get("items")?, place)))
                    .flat_map(|(items, place)| expand(items, place, self.table))
                    .collect();
                Value::Array(values.into_iter().map(|value| self.value(value, &items)).collect())
            }
            Value::Object(fields) => Value::Object(self.object(fields, schemas)),
            other => other,
        }
    }

    fn object(&mut self, fields: Map<String, Value>, schemas: &[(&'a Value, SchemaPlace<'a>)]) -> Map<String, Value> {
        let mut walked = Map::new();
        for (name, value) in fields {
            if SECRET_FIELDS.contains(&name.as_str()) && !value.is_null() {
                walked.insert(name, WITHHELD.into());
                continue;
            }
            let mut of_field: Alternatives<'a> = Vec::new();
            let mut is_named = false;
            for (schema, place) in schemas {
                let named = schema.get("properties").and_then(|properties| properties.get(&name));
                is_named |= named.is_some();
                let further = schema.get("additionalProperties").filter(|further| further.is_object());
                if let Some(schema) = named.or(further) {
                    let path = if place.path.is_empty() { name.clone() } else { format!("{}.{name}", place.path) };
                    of_field.extend(expand(schema, &SchemaPlace { schema: place.schema, path }, self.table));
                }
            }
            let value = self.value(value, &of_field);
            // Names that no schema has come from others too.
            let name = if is_named { name } else { self.fence.mark(&name) };
            walked.insert(name, value);
        }
        walked
    }

    fn text(&mut self, text: &str, schemas: &[(&'a Value, SchemaPlace<'a>)]) -> String {
        let is_fixed = |schema: &Value| {
            let is_listed =
                schema.get("enum").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == text));
            let is_time = schema.get("format").is_some_and(|format| format == "date-time" || format == "date");
            is_listed || schema.get("const").is_some_and(|one| one == text) || (is_time && text.len() <= 35)
        };
        let origins = schemas.iter().map(|(schema, place)| match is_fixed(schema) {
            true => TextOrigin::Own,
            false => origin(place.schema, &place.path),
        });
        // The strictest of several alternatives holds.
        let strictest = origins.reduce(|one, other| match (one, other) {
            (TextOrigin::ForeignText, _) | (_, TextOrigin::ForeignText) => TextOrigin::ForeignText,
            (TextOrigin::Foreign, _) | (_, TextOrigin::Foreign) => TextOrigin::Foreign,
            _ => TextOrigin::Own,
        });
        match strictest {
            Some(TextOrigin::Own) => text.to_owned(),
            Some(TextOrigin::ForeignText) => self.fence.enclose(text),
            Some(TextOrigin::Foreign) | None => self.fence.mark(text),
        }
    }
}

/// The alternatives of a schema, with references followed.
fn expand<'a>(schema: &'a Value, place: &SchemaPlace<'a>, table: &'a OperationTable) -> Alternatives<'a> {
    let place = match OperationTable::referred(schema) {
        Some(name) => SchemaPlace { schema: name, path: String::new() },
        None => place.clone(),
    };
    let schema = table.resolve(schema);
    let mut alternatives = Vec::new();
    for word in ["allOf", "oneOf", "anyOf"] {
        for part in schema.get(word).and_then(Value::as_array).into_iter().flatten() {
            if part.get("type").is_none_or(|kind| kind != "null") {
                alternatives.extend(expand(part, &place, table));
            }
        }
    }
    // A schema of alternatives alone says nothing of the value itself.
    if alternatives.is_empty() || schema.get("properties").is_some() || schema.get("type").is_some() {
        alternatives.push((schema, place));
    }
    alternatives
}

#[cfg(test)]
mod tests;
