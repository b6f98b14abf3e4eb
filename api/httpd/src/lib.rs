//! The HTTP layer of the API below its operations.
//!
//! ```text
//! [listener] → [connection] → (router, dispatch, handlers: crate `api`) → [body]
//! [request] → [fields], [request_object] → input · output → [response] · error → [problem]
//! ```
//!
//! Connections have limits of header, body and time. A request's fields are parsed so that all errors are reported at
//! once. [`problem`] renders all errors. Input and output types describe themselves for the OpenAPI document.

pub mod body;
pub mod connection;
pub mod encoding;
pub mod fields;
pub mod forwarded_for;
pub mod header_limits;
pub mod json_limits;
pub mod json_timestamp;
pub mod large_response;
pub mod listener;
pub mod model_values;
pub mod ok_response;
pub mod origin;
pub mod paging;
pub mod peer_address;
pub mod problem;
pub mod protocol_errors;
pub mod query;
pub mod request;
pub mod request_object;
pub mod request_value;
pub mod response;
mod write_timeout;
