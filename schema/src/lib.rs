//! JSON Schema (2020-12, the dialect of OpenAPI 3.1) of what the API accepts and sends.
//!
//! ```text
//! struct ─► #[derive(ToSchema)] ─► table of properties ─► object_schema ─► components of the document
//! ```
//!
//! The schema of a response is derived from its struct (`#[derive(ToSchema)]`): names and types are serde's, doc comments
//! are the descriptions. A named type becomes a component that others refer to. Limits in a schema are the constants
//! that the parser enforces.

mod builders;
mod components;
mod property;
mod to_schema;
mod types;

pub use schema_derive::ToSchema;

pub use self::builders::{
    address, allow_null, allow_null_for_optional, boolean, bounded_string, count, header_parameter, id, list,
    list_page, nullable_count, nullable_string, nullable_time, object, object_with, path_parameter, processor_event,
    query_parameter, string, string_enum, time,
};
pub use self::components::Schemas;
pub use self::property::{Property, all_of, describe, object_schema, with_keywords};
pub use self::to_schema::ToSchema;
