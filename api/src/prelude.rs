//! Imports of nearly every handler: the state, the caller, requests, responses and their schemas.

pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use bytes::Bytes;
pub(crate) use http::{Method, StatusCode};
pub(crate) use httpd::fields::{self, FieldDiagnostics, ObjectFields};
pub(crate) use httpd::json_timestamp::JsonTimestamp;
pub(crate) use httpd::ok_response::OkResponse;
pub(crate) use httpd::paging::{self, PageParameters};
pub(crate) use httpd::problem::{ErrorCode, FieldErrors, Problem, Result};
pub(crate) use httpd::query::{Query, RequestQuery};
pub(crate) use httpd::request::{BodySchema, FromRequest, Media, NoInput, Request, RequestSpec, SMALL_BYTES_MAX};
pub(crate) use httpd::request_object::{RequestObject, read_body, read_checked_body};
pub(crate) use jiff::Timestamp;
pub(crate) use message::address::Address;
pub(crate) use model::credential::ApiKeyScope;
pub(crate) use model::id::*;
pub(crate) use schema::{Schemas, ToSchema};
pub(crate) use serde::Serialize;
pub(crate) use serde_json::value::RawValue;
pub(crate) use serde_json::{Value, json};
pub(crate) use store::access::{SignedInUser, Tenant};
pub(crate) use store::engine::{Batch, CommitError};

pub(crate) use crate::handler::Owner;
pub(crate) use crate::id_path::{deferred_id_path, id_path};
pub(crate) use crate::into_problem::{IntoProblem, OrProblem};
pub(crate) use crate::list_response::list_response;
pub(crate) use crate::object_response::object_response;
pub(crate) use crate::object_view::object_view;
pub(crate) use crate::sdk::Risk;
pub(crate) use crate::set_given::set_given;
pub(crate) use crate::state::{AppState, State};
