//! `ToSchema`: the schema of a type.

use http::StatusCode;
use serde_json::Value;

use crate::components::Schemas;
use crate::property::{Property, describe};

pub trait ToSchema {
    /// The status of a successful response of this type.
    const SUCCESS_STATUS: StatusCode = StatusCode::OK;

    /// The fields, if it is an object whose schema is derived.
    const PROPERTIES: &'static [Property] = &[];

    /// The schema, or a reference to it.
    fn schema(schemas: &mut Schemas) -> Value;

    /// The schema of a field of this type.
    fn described(schemas: &mut Schemas, description: Option<&str>) -> Value {
        describe(Self::schema(schemas), description)
    }
}
