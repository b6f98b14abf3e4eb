//! The answer to a batch: an entry for each email, in their order; and what it says is to be tried again.

use bytes::Bytes;
use mail::email::EmailStatus;
use mail::id::EmailId;
use mail::idempotency::{IdempotentResult, PartialResult};
use queue::accept::SubmitReceipt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::emails::send::SendResponse;
use crate::idempotency::stored_outcome;
use crate::problem::Problem;
use crate::schema::{self, Schemas, ToSchema};

/// What became of one email of a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BatchEntry {
    index: usize,
    id: Option<EmailId>,
    status: EmailStatus,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// It was sent before, with its own key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl BatchEntry {
    /// It was accepted.
    pub(super) fn from_accepted(index: usize, accepted: &SubmitReceipt, warnings: &[String]) -> Self {
        let SendResponse { id, status, warnings } = SendResponse::from_accepted(accepted, warnings);
        Self { index, id: Some(id), status, warnings, replayed: false, error: None }
    }

    /// It was accepted before, with its own key; and this was answered.
    pub(super) fn from_stored(index: usize, answer: &Bytes) -> Result<Self, Problem> {
        let SendResponse { id, status, warnings } = serde_json::from_slice(answer).map_err(Problem::internal)?;
        Ok(Self { index, id: Some(id), status, warnings, replayed: true, error: None })
    }

    fn from_problem(index: usize, problem: &Problem) -> Self {
        let (status, error) = (EmailStatus::Failed, Some(problem.batch_entry_error()));
        Self { index, id: None, status, warnings: Vec::new(), replayed: false, error }
    }
}

/// The answer to `POST /emails/batch`: an entry for each email, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchResponse {
    data: Vec<BatchEntry>,
}

impl BatchResponse {
    /// What came of each email.
    pub(super) fn from_results(told: &[Result<BatchEntry, Problem>]) -> Self {
        let entry = |(index, one): (usize, &Result<BatchEntry, Problem>)| match one {
            Ok(entry) => entry.clone(),
            Err(problem) => BatchEntry::from_problem(index, problem),
        };
        Self { data: told.iter().enumerate().map(entry).collect() }
    }

    /// What was answered when the batch was done in part: the entries that stay as they are, each at its
    /// place, and none where the email is to be tried again.
    pub(super) fn settled_entries(before: &PartialResult) -> Result<Vec<Option<BatchEntry>>, Problem> {
        let Self { data } = serde_json::from_str(&before.answer).map_err(Problem::internal)?;
        let is_open = |entry: &BatchEntry| before.open.iter().any(|n| usize::from(*n) == entry.index);
        Ok(data.into_iter().map(|entry| Some(entry).filter(|entry| !is_open(entry))).collect())
    }
}

/// What is kept of what came of a batch: emails that were refused for the moment may be asked for again.
pub(super) fn batch_outcome(told: &[Result<BatchEntry, Problem>]) -> IdempotentResult {
    let passing = |(index, one): (usize, &Result<BatchEntry, Problem>)| {
        one.as_ref().is_err_and(Problem::is_transient).then(|| u16::try_from(index).ok()).flatten()
    };
    let open: Vec<u16> = told.iter().enumerate().filter_map(passing).collect();
    match stored_outcome(&BatchResponse::from_results(told)) {
        IdempotentResult::Done(answer) if !open.is_empty() => IdempotentResult::Partly(PartialResult { answer, open }),
        outcome => outcome,
    }
}

impl ToSchema for BatchResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("BatchSent", |_| {
            let error = schema::object_with(
                "Why not",
                &["message", "code"],
                [
                    ("message", schema::string("For people")),
                    ("code", schema::string("For programs, as in the answers to single emails")),
                    ("details", json!({"type": "object", "description": "Particulars"})),
                    ("upgrade_url", schema::string("Where the account is upgraded")),
                ],
            );
            let mut entry = schema::object_with(
                "What became of one email",
                &["index", "id", "status"],
                [
                    ("index", json!({"type": "integer", "description": "Its place in the batch, from 0"})),
                    ("id", json!({"type": ["string", "null"], "description": "The email's id (`msg_…`)"})),
                    ("status", schema::string_enum(&["sent", "scheduled", "failed"], "Whether it was accepted")),
                    ("warnings", schema::list(json!({"type": "string"}), "What was ignored")),
                    ("replayed", schema::boolean("It was sent before, with its own `idempotency_key`")),
                    ("error", error),
                ],
            );
            entry["examples"] = json!([{"index": 0, "id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "status": "sent"}]);
            schema::object(
                "What became of each email",
                [("data", schema::list(entry, "An entry for each email, in their order"))],
            )
        })
    }
}
