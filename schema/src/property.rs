//! Object schemas from the tables of properties that `#[derive(ToSchema)]` writes.

use serde_json::{Value, json};

use crate::components::Schemas;

/// A row of an object's table of properties.
pub enum Property {
    Named {
        name: &'static str,
        description: Option<&'static str>,
        /// `ToSchema::described` of the field's type.
        schema: fn(&mut Schemas, Option<&str>) -> Value,
        is_required: bool,
        /// Keywords that the type cannot tell, as an object.
        keywords: Option<fn() -> Value>,
    },
    /// The properties of a flattened object, which may be absent.
    Flattened { properties: &'static [Property], is_required: bool },
}

impl Property {
    /// Adds the property to an object, which may be absent as a whole.
    fn add_to(&self, object: &mut Value, is_object_required: bool, schemas: &mut Schemas) {
        match self {
            Self::Flattened { properties, is_required } => {
                let is_required = *is_required && is_object_required;
                properties.iter().for_each(|property| property.add_to(object, is_required, schemas));
            }
            Self::Named { name, description, schema, is_required, keywords } => {
                let schema = schema(schemas, *description);
                object["properties"][name] = match keywords {
                    Some(keywords) => with_keywords(schema, keywords()),
                    None => schema,
                };
                if *is_required
                    && is_object_required
                    && let Some(required) = object["required"].as_array_mut()
                {
                    required.push(json!(name));
                }
            }
        }
    }
}

/// The schema of an object with these properties.
pub fn object_schema(schemas: &mut Schemas, description: Option<&str>, properties: &[Property]) -> Value {
    let mut object = describe(json!({"type": "object"}), description);
    object["properties"] = json!({});
    object["required"] = json!([]);
    properties.iter().for_each(|property| property.add_to(&mut object, true, schemas));
    if let Some(fields) = object.as_object_mut()
        && fields["required"] == json!([])
    {
        fields.remove("required");
    }
    object
}

/// The schema of an object that has the fields of two.
pub fn all_of(base: Value, rest: Value, description: Option<&str>) -> Value {
    describe(json!({"allOf": [base, rest]}), description)
}

/// Sets keywords, given as an object.
pub fn with_keywords(mut schema: Value, keywords: Value) -> Value {
    if let Value::Object(keywords) = keywords {
        keywords.into_iter().for_each(|(keyword, value)| schema[keyword] = value);
    }
    schema
}

/// Sets the description, if there is one.
pub fn describe(mut schema: Value, description: Option<&str>) -> Value {
    if let Some(text) = description {
        schema["description"] = json!(text);
    }
    schema
}
