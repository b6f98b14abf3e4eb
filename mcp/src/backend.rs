//! Carries out operations of the API for one caller.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use crate::caller_rights::CallerRights;
use crate::operation_table::OperationTable;

/// Calls operations with the credentials of one caller. The API decides what they allow.
pub trait Backend: Send + Sync {
    /// Calls an operation.
    ///
    /// # Errors
    /// There is no answer. An answer of the API that refuses the call is a [`Reply`].
    fn perform(&self, call: OperationCall) -> BoxFuture<'_, Result<Reply, NoReply>>;

    /// The time now, as far as this machine knows the server's.
    fn now(&self) -> Timestamp;

    /// Returns what the credentials allow, as far as it is known.
    fn caller_rights(&self) -> BoxFuture<'_, Result<CallerRights, NoReply>> {
        Box::pin(async move {
            let reply = self.perform(OperationCall::get("get_account", "/account")).await?;
            Ok(rights_of_reply(&reply))
        })
    }
}

/// The rights as far as an answer of `get_account` tells them.
pub fn rights_of_reply(reply: &Reply) -> CallerRights {
    let error = match reply.status {
        UNAUTHORIZED => return CallerRights::Unknown,
        FORBIDDEN => reply.json().get("error").cloned().unwrap_or_default(),
        _ => return CallerRights::Any,
    };
    // It is also refused to a token without the scope that the details name, and to a key of one domain.
    match error["details"]["required_key_scope"] == "full" {
        true => CallerRights::of_sending_key(OperationTable::get()),
        false => CallerRights::Any,
    }
}

pub(crate) const UNAUTHORIZED: u16 = 401;
const FORBIDDEN: u16 = 403;

#[derive(Debug, Clone, PartialEq)]
pub struct OperationCall {
    /// The operation's id, for example `list_emails`.
    pub operation: String,
    pub method: Method,
    /// Path and query, encoded.
    pub target: String,
    pub body: Option<Value>,
    /// `Idempotency-Key`, if the model chose one.
    pub idempotency_key: Option<String>,
    /// `If-Match`.
    pub if_match: Option<String>,
    /// True if the operation takes an `Idempotency-Key`.
    pub is_idempotent: bool,
    /// True if it may be repeated when its answer was lost.
    pub retry: bool,
}

impl OperationCall {
    /// A GET request.
    pub fn get(operation: &str, target: impl Into<String>) -> Self {
        Self {
            operation: operation.to_owned(),
            method: Method::GET,
            target: target.into(),
            body: None,
            idempotency_key: None,
            if_match: None,
            is_idempotent: false,
            retry: true,
        }
    }
}

/// The answer of an operation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub media_type: String,
    pub body: Bytes,
    /// Seconds, from `retry-after`.
    pub retry_after: Option<u64>,
    /// The `Idempotency-Key` of the request.
    pub idempotency_key: Option<String>,
}

impl Reply {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.media_type.starts_with("application/json")
    }

    /// The JSON body; null if it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoReply {
    /// Why, in a sentence for people that names no secret.
    pub reason: String,
    /// The `Idempotency-Key` of the request, which may have been carried out.
    pub idempotency_key: Option<String>,
    /// True if the server may have carried out the call.
    pub is_unconfirmed: bool,
}

impl NoReply {
    /// A call that may have been carried out, without an idempotency key.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), idempotency_key: None, is_unconfirmed: true }
    }

    /// A call that was not carried out.
    pub fn not_done(reason: impl Into<String>) -> Self {
        Self { is_unconfirmed: false, ..Self::new(reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sending_key_is_taken_for_one() {
        let reply = |status: u16, details: Value| Reply {
            status,
            body: Bytes::from(serde_json::json!({"error": {"code": "forbidden", "details": details}}).to_string()),
            ..Reply::default()
        };
        let sending = CallerRights::of_sending_key(OperationTable::get());
        let details = serde_json::json!({"required_key_scope": "full"});
        assert_eq!(rights_of_reply(&reply(FORBIDDEN, details)), sending);
        // A full key of one domain is refused `get_account` too.
        assert_eq!(rights_of_reply(&reply(FORBIDDEN, Value::Null)), CallerRights::Any);
        assert_eq!(rights_of_reply(&reply(UNAUTHORIZED, Value::Null)), CallerRights::Unknown);
    }
}
