//! A backend with prepared answers, for tests and examples.

use parking_lot::Mutex;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::backend::{Backend, NoReply, OperationCall, Reply};

/// Answers each call by the first prepared answer whose operation it has; otherwise 404.
#[derive(Debug, Default)]
pub struct FakeBackend {
    replies: Vec<(&'static str, Result<Reply, NoReply>)>,
    calls: Mutex<Vec<OperationCall>>,
}

impl FakeBackend {
    /// Answers an operation with JSON.
    pub fn with(self, operation: &'static str, status: u16, body: &Value) -> Self {
        let body = body.to_string().into();
        self.with_reply(
            operation,
            Ok(Reply { status, media_type: "application/json".into(), body, ..Reply::default() }),
        )
    }

    /// Answers an operation, or does not.
    #[must_use]
    pub fn with_reply(mut self, operation: &'static str, reply: Result<Reply, NoReply>) -> Self {
        self.replies.push((operation, reply));
        self
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<OperationCall> {
        self.calls.lock().clone()
    }
}

impl Backend for FakeBackend {
    fn perform(&self, call: OperationCall) -> BoxFuture<'_, Result<Reply, NoReply>> {
        let prepared = self.replies.iter().find(|(operation, _)| *operation == call.operation);
        let reply = prepared.map(|(_, reply)| reply.clone()).unwrap_or_else(|| {
            let error = json!({"error": {"code": "not_found", "message": "There is no such object"}});
            let body = error.to_string().into();
            Ok(Reply { status: 404, media_type: "application/json".into(), body, ..Reply::default() })
        });
        self.calls.lock().push(call);
        Box::pin(std::future::ready(reply))
    }

    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Backend for std::sync::Arc<FakeBackend> {
    fn perform(&self, call: OperationCall) -> BoxFuture<'_, Result<Reply, NoReply>> {
        (**self).perform(call)
    }

    fn now(&self) -> Timestamp {
        (**self).now()
    }
}
