//! `Schema`: the part of JSON Schema that the API's document uses.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Schema {
    #[serde(rename = "$ref")]
    pub reference: Option<String>,
    #[serde(rename = "type")]
    pub types: Types,
    /// The format of a string; `base64` if that is its content encoding.
    #[serde(alias = "contentEncoding")]
    pub format: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "enum")]
    pub values: Option<Vec<Value>>,
    #[serde(rename = "const")]
    pub constant: Option<Value>,
    pub properties: Option<Properties>,
    pub required: Vec<String>,
    pub additional_properties: Option<Additional>,
    pub items: Option<Box<Schema>>,
    pub one_of: Vec<Schema>,
    pub all_of: Vec<Schema>,
    #[serde(deserialize_with = "present")]
    pub default: Option<Value>,
    pub examples: Vec<Value>,
}

/// Keeps `null`, which `Option<Value>` would read as absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Schema {
    /// The name of the component that the schema refers to.
    pub fn component(&self) -> Option<&str> {
        self.reference.as_deref()?.strip_prefix("#/components/schemas/")
    }

    /// Whether only `null` is valid.
    pub fn is_null(&self) -> bool {
        self.types.0.len() == 1 && self.types.has("null")
    }

    /// Whether it has nothing but a reference and texts.
    pub fn is_reference(&self) -> bool {
        self.reference.is_some()
    }

    /// Whether it allows any value, or arrays of any values.
    pub fn says_nothing(&self) -> bool {
        let bare = Self { description: self.description.clone(), ..Self::default() };
        *self == bare || self.items.as_ref().is_some_and(|items| items.says_nothing())
    }

    /// Whether values are objects with known fields.
    pub fn has_fields(&self) -> bool {
        self.properties.as_ref().is_some_and(|all| !all.0.is_empty())
    }
}

/// `type`: one name or several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Types(pub Vec<String>);

impl Types {
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|one| one == name)
    }

    /// The type apart from `null`.
    pub fn main(&self) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|one| *one != "null")
    }
}

impl<'de> Deserialize<'de> for Types {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum StringOrList {
            Single(String),
            Several(Vec<String>),
        }
        Ok(match StringOrList::deserialize(deserializer)? {
            StringOrList::Single(name) => Self(vec![name]),
            StringOrList::Several(names) => Self(names),
        })
    }
}

/// `additionalProperties`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Additional {
    Allowed(bool),
    Typed(Box<Schema>),
}

/// `properties` in the order of the document.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties(pub Vec<(String, Schema)>);

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Properties;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of schemas")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Properties(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A reference to a type, as templates get it. `kind` is the variant's name in lower case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum TypeRef {
    String {
        format: Option<String>,
    },
    Integer,
    Number,
    Boolean,
    Any,
    /// Strings of a list that can grow. `name` is absent for a constant, which has one value.
    Enum {
        name: Option<String>,
        values: Vec<String>,
    },
    Array {
        items: Box<TypeRef>,
    },
    /// An object with free keys.
    Map {
        items: Box<TypeRef>,
    },
    /// A named type of `types`.
    Ref {
        name: String,
    },
    /// One of several types. With `one_or_many`, the variants are T and an array of T.
    Union {
        variants: Vec<TypeRef>,
        one_or_many: bool,
    },
}

impl TypeRef {
    /// Whether a value can be an object with free keys.
    pub fn is_free_map(&self) -> bool {
        match self {
            Self::Map { .. } => true,
            Self::Array { items } => items.is_free_map(),
            Self::Union { variants, .. } => variants.iter().any(Self::is_free_map),
            _ => false,
        }
    }
}
