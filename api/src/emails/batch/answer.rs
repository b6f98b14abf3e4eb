//! The answer to a batch: an entry for each email, in their order; and what it says is to be tried again.

use bytes::Bytes;
use mail::email::EmailStatus;
use mail::id::EmailId;
use mail::idempotency::{Outcome, Partly};
use queue::accept::Accepted;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::emails::send::Sent;
use crate::idempotency::done;
use crate::problem::Problem;
use crate::schema::{self, Describe, Schemas};

/// What became of one email of a batch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
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

impl Entry {
    /// It was accepted.
    pub(super) fn sent(index: usize, accepted: &Accepted, warnings: &[String]) -> Self {
        let Sent { id, status, warnings } = Sent::of(accepted, warnings);
        Self { index, id: Some(id), status, warnings, replayed: false, error: None }
    }

    /// It was accepted before, with its own key; and this was answered.
    pub(super) fn again(index: usize, answer: &Bytes) -> Result<Self, Problem> {
        let Sent { id, status, warnings } = serde_json::from_slice(answer).map_err(Problem::internal)?;
        Ok(Self { index, id: Some(id), status, warnings, replayed: true, error: None })
    }

    fn failed(index: usize, problem: &Problem) -> Self {
        let (status, error) = (EmailStatus::Failed, Some(problem.entry()));
        Self { index, id: None, status, warnings: Vec::new(), replayed: false, error }
    }
}

/// The answer to `POST /emails/batch`: an entry for each email, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub struct BatchSent {
    data: Vec<Entry>,
}

impl BatchSent {
    /// What came of each email.
    pub(super) fn of(told: &[Result<Entry, Problem>]) -> Self {
        let entry = |(index, one): (usize, &Result<Entry, Problem>)| match one {
            Ok(entry) => entry.clone(),
            Err(problem) => Entry::failed(index, problem),
        };
        Self { data: told.iter().enumerate().map(entry).collect() }
    }

    /// What was answered when the batch was done in part: the entries that stay as they are, each at its
    /// place, and none where the email is to be tried again.
    pub(super) fn settled(before: &Partly) -> Result<Vec<Option<Entry>>, Problem> {
        let Self { data } = serde_json::from_str(&before.answer).map_err(Problem::internal)?;
        let is_open = |entry: &Entry| before.open.iter().any(|n| usize::from(*n) == entry.index);
        Ok(data.into_iter().map(|entry| Some(entry).filter(|entry| !is_open(entry))).collect())
    }
}

/// What is kept of what came of a batch: emails that were refused for the moment may be asked for again.
pub(super) fn outcome(told: &[Result<Entry, Problem>]) -> Outcome {
    let passing = |(index, one): (usize, &Result<Entry, Problem>)| {
        one.as_ref().is_err_and(Problem::is_passing).then(|| u16::try_from(index).ok()).flatten()
    };
    let open: Vec<u16> = told.iter().enumerate().filter_map(passing).collect();
    match done(&BatchSent::of(told)) {
        Outcome::Done(answer) if !open.is_empty() => Outcome::Partly(Partly { answer, open }),
        outcome => outcome,
    }
}

impl Describe for BatchSent {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("BatchSent", |_| {
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
                    ("status", schema::words(&["sent", "scheduled", "failed"], "Whether it was accepted")),
                    ("warnings", schema::list(json!({"type": "string"}), "What was ignored")),
                    ("replayed", schema::boolean("It was sent before, with its own `idempotency_key`")),
                    ("error", error),
                ],
            );
            entry["examples"] =
                json!([{"index": 0, "id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "status": "sent"}]);
            schema::object(
                "What became of each email",
                [("data", schema::list(entry, "An entry for each email, in their order"))],
            )
        })
    }
}
