//! The response to a batch: one entry per email, in order; and which of them may be retried.

use httpd::problem::BatchEntryError;
use model::email::EmailStatus;
use model::idempotency::{IdempotentResult, PartialResult};
use queue::intake::SubmitReceipt;
use serde::Deserialize;

use crate::emails::send::SendResponse;
use crate::idempotency::stored_outcome;
use crate::prelude::*;

/// The result of one email
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(examples = [{"index": 0, "id": "msg_01K9ZQ4Y8M3T5V7W2X6B0C1D9E", "status": "sent"}])]
pub struct BatchEntry {
    /// The position in the batch, from 0
    index: usize,
    /// The email's id (`msg_…`)
    id: Option<EmailId>,
    /// Whether it was accepted
    #[schema(as = String, enum = ["sent", "scheduled", "failed"])]
    status: EmailStatus,
    /// Warnings, for example about ignored fields
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Whether the email was sent before with its own `idempotency_key`
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    /// The error, if the email was not accepted
    error: Option<BatchEntryError>,
}

impl BatchEntry {
    /// Entry of an accepted email.
    pub(super) fn from_accepted(index: usize, accepted: &SubmitReceipt, warnings: &[String]) -> Self {
        let SendResponse { id, status, warnings } = SendResponse::from_accepted(accepted, warnings);
        Self { index, id: Some(id), status, warnings, replayed: false, error: None }
    }

    /// Entry of an email whose own idempotency key was completed before.
    pub(super) fn from_stored(index: usize, body: &Bytes) -> Result<Self> {
        let SendResponse { id, status, warnings } = serde_json::from_slice(body).map_err(Problem::internal)?;
        Ok(Self { index, id: Some(id), status, warnings, replayed: true, error: None })
    }

    fn from_problem(index: usize, problem: &Problem) -> Self {
        let (status, error) = (EmailStatus::Failed, Some(problem.batch_entry_error()));
        Self { index, id: None, status, warnings: Vec::new(), replayed: false, error }
    }
}

/// The results of a batch
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(name = "BatchSent")]
pub struct BatchResponse {
    /// One entry per email, in order
    data: Vec<BatchEntry>,
}

impl BatchResponse {
    pub(super) fn from_results(results: &[Result<BatchEntry>]) -> Self {
        let entry = |(index, result): (usize, &Result<BatchEntry>)| match result {
            Ok(entry) => entry.clone(),
            Err(problem) => BatchEntry::from_problem(index, problem),
        };
        Self { data: results.iter().enumerate().map(entry).collect() }
    }

    /// The final entries of a partly completed batch, by index; `None` for emails that are to be retried.
    pub(super) fn settled_entries(before: &PartialResult) -> Result<Vec<Option<BatchEntry>>> {
        let Self { data } = serde_json::from_str(&before.answer).map_err(Problem::internal)?;
        let is_open = |entry: &BatchEntry| before.open.iter().any(|n| usize::from(*n) == entry.index);
        Ok(data.into_iter().map(|entry| Some(entry).filter(|entry| !is_open(entry))).collect())
    }
}

/// The result to store under the batch's key. Emails with a transient error remain open for a retry.
pub(super) fn batch_outcome(results: &[Result<BatchEntry>]) -> IdempotentResult {
    let transient_index = |(index, entry): (usize, &Result<BatchEntry>)| {
        entry.as_ref().is_err_and(Problem::is_transient).then(|| u16::try_from(index).ok()).flatten()
    };
    let open: Vec<u16> = results.iter().enumerate().filter_map(transient_index).collect();
    match stored_outcome(&BatchResponse::from_results(results)) {
        IdempotentResult::Done(body) if !open.is_empty() => {
            IdempotentResult::Partly(PartialResult { answer: body, open })
        }
        outcome => outcome,
    }
}
