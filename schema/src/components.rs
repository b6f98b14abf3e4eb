//! `Schemas`: the components of the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The named schemas of a document (`components/schemas`).
#[derive(Debug, Default)]
pub struct Schemas(BTreeMap<&'static str, Value>);

impl Schemas {
    /// Returns a reference to a named schema, and builds the schema on first use.
    pub fn component(&mut self, name: &'static str, make: impl FnOnce(&mut Self) -> Value) -> Value {
        if !self.0.contains_key(name) {
            // Reserve the name first, so that a schema may refer to itself.
            self.0.insert(name, Value::Null);
            let schema = make(self);
            self.0.insert(name, schema);
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// Adds an optional field to an object schema, or to each alternative of a `oneOf`. A named schema is shared, so
    /// it is not changed: the field is added with `allOf`.
    pub fn add_optional_field(&self, schema: &mut Value, name: &str, field: &Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            let named = reference.rsplit('/').next().and_then(|name| self.0.get(name));
            if named.is_none_or(|named| named["properties"].get(name).is_none()) {
                let addition = json!({"type": "object", "properties": {name: field}});
                *schema = json!({"allOf": [schema, addition]});
            }
            return;
        }
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            fields.entry(name).or_insert_with(|| field.clone());
            return;
        }
        for alternative in schema.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
            self.add_optional_field(alternative, name, field);
        }
    }

    /// All named schemas.
    pub fn into_value(self) -> Value {
        self.0.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
    }
}
