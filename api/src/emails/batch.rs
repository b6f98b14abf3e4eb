//! The batch: up to 100 send requests in one, accepted in one commit.
//!
//! Each email has its own fate, told in its own entry; with `Batch-Validation: strict` all are sent or
//! none. What is wrong with the batch as a whole (its number, an attachment) refuses it whole, as
//! email-api.md, "Limits", has it. `{"emails": […]}`, or the list alone.

use mail::draft::Draft;
use mail::email::EmailStatus;
use mail::id::EmailId;
use queue::accept::Accepted;
use queue::once::Claim;
use queue::refusal::Refusal;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::access::Tenant;

use super::letter::Letter;
use super::send::{NAMES, REQUEST_BYTES_MAX, SendRequest, Sent, send_schema};
use crate::call::{Call, Input, Takes};
use crate::fields::{self, Given, Kind, Names, Notes};
use crate::idempotency::{self, fingerprint};
use crate::problem::{Code, FieldErrors, Problem};
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

/// Emails of a batch.
pub const EMAILS_MAX: usize = 100;
/// The header field that asks for all or nothing.
const VALIDATION: &str = "batch-validation";

const BATCH_NAMES: Names =
    Names { known: &[("emails", "emails")], later: &[], foreign: &[("Messages", "emails")] };

/// What was found of an email before the hall saw it.
#[derive(Debug)]
pub enum Fate {
    /// It was handed in, with these warnings.
    HandedIn(Vec<String>),
    /// It will not do.
    Refused(Problem),
}

/// A batch.
#[derive(Debug)]
pub struct BatchRequest {
    /// The emails that can be handed in.
    pub letters: Vec<Letter>,
    /// One for each email of the batch.
    pub fates: Vec<Fate>,
    /// All or none.
    pub strict: bool,
    /// That it is to be done once.
    pub claim: Option<Claim>,
}

impl Input for BatchRequest {
    const BODY_BYTES_MAX: Option<usize> = Some(REQUEST_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let email = schemas.named("SendRequest", |_| send_schema());
        let emails = json!({"type": "array", "items": email, "minItems": 1, "maxItems": EMAILS_MAX});
        let body = json!({"oneOf": [schema::object("The emails; none with attachments", [("emails", emails.clone())]), emails]});
        let strict = schema::header_parameter("Batch-Validation", "`strict`: all are sent, or none");
        let parameters = vec![idempotency::parameter(), strict];
        Takes { parameters, body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let strict = match call.headers.get(VALIDATION).map(|value| value.as_bytes()) {
            None | Some(b"permissive") => false,
            Some(b"strict") => true,
            Some(_) => return Err(Problem::field("Batch-Validation", "is `strict` or `permissive`")),
        };
        let emails = emails(&call.body)?;
        let claim = idempotency::claim(&call.headers, || fingerprint(&[("emails", emails)], NAMES.known))?;
        let items = fields::list(emails, EMAILS_MAX).map_err(|text| Problem::field("emails", text))?;
        if items.is_empty() {
            return Err(Problem::field("emails", "has no entries"));
        }
        let mut errors = FieldErrors::default();
        let mut batch = Self { letters: Vec::new(), fates: Vec::with_capacity(items.len()), strict, claim };
        for (n, item) in items.into_iter().enumerate() {
            batch.add(n, item, &mut errors);
        }
        if !errors.is_empty() {
            return Err(errors.into());
        }
        if strict && batch.fates.iter().any(|fate| matches!(fate, Fate::Refused(_))) {
            return Err(BatchSent::of(&batch.fates, &[], "").refused());
        }
        Ok(batch)
    }
}

impl BatchRequest {
    fn add(&mut self, n: usize, item: &RawValue, errors: &mut FieldErrors) {
        let object = match fields::object(item) {
            Ok(object) => object,
            Err(text) => return errors.add(&format!("emails[{n}]"), text),
        };
        if object.0.iter().any(|(name, value)| name == "attachments" && !matches!(value.get(), "null" | "[]"))
        {
            return errors
                .add(&format!("emails[{n}].attachments"), "a batch takes no attachments; send it alone");
        }
        self.fates.push(match SendRequest::of_item(object) {
            Ok(request) => {
                self.letters.push(request.letter);
                Fate::HandedIn(request.warnings)
            }
            Err(problem) => Fate::Refused(problem),
        });
    }
}

/// Makes drafts of the letters; those that cannot be filled in are refused.
pub(super) async fn fill(
    room: &Room,
    tenant: &Tenant,
    letters: Vec<Letter>,
    fates: &mut [Fate],
) -> Vec<Draft> {
    let handed_in = fates.iter_mut().filter(|fate| matches!(fate, Fate::HandedIn(_)));
    let mut drafts = Vec::with_capacity(letters.len());
    for (letter, fate) in letters.into_iter().zip(handed_in) {
        match letter.fill(room, tenant).await {
            Ok(draft) => drafts.push(draft),
            Err(problem) => *fate = Fate::Refused(problem),
        }
    }
    drafts
}

/// The list of emails: the body's `emails`, or the body.
fn emails(body: &[u8]) -> Result<&RawValue, Problem> {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'[') {
        return serde_json::from_slice(body)
            .map_err(|error| Problem::new(Code::INVALID_JSON, format!("The body is not JSON: {error}")));
    }
    let mut notes = Notes::default();
    let given = Given::sort(fields::body(body)?, &BATCH_NAMES, "", &mut notes);
    if !notes.errors.is_empty() {
        return Err(notes.errors.into());
    }
    match given.value("emails") {
        Some(emails) if Kind::of(emails) == Kind::List => Ok(emails),
        Some(_) => Err(Problem::field("emails", "must be a list")),
        None => Err(Problem::field("emails", "is required")),
    }
}

/// What became of one email of a batch.
#[derive(Debug, Serialize)]
pub struct Entry {
    index: usize,
    id: Option<EmailId>,
    status: EmailStatus,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

/// The answer to `POST /emails/batch`: an entry for each email, in their order.
#[derive(Debug, Serialize)]
pub struct BatchSent {
    data: Vec<Entry>,
}

impl BatchSent {
    /// Puts together what was found before the hall and by it.
    #[must_use]
    pub fn of(fates: &[Fate], outcomes: &[Result<Accepted, Refusal>], upgrade_url: &str) -> Self {
        let mut outcomes = outcomes.iter();
        let entry = |(index, fate): (usize, &Fate)| {
            let failed = |problem: &Problem| Entry {
                index,
                id: None,
                status: EmailStatus::Failed,
                warnings: Vec::new(),
                error: Some(problem.entry()),
            };
            match fate {
                Fate::Refused(problem) => failed(problem),
                Fate::HandedIn(warnings) => match outcomes.next() {
                    Some(Ok(accepted)) => Entry {
                        index,
                        id: Some(accepted.id),
                        status: accepted.status,
                        warnings: Sent::of(accepted, warnings).warnings,
                        error: None,
                    },
                    Some(Err(refusal)) => failed(&Problem::of_refusal(refusal.clone(), upgrade_url)),
                    // The hall has not seen it: nothing was sent, for another's sake.
                    None => Entry {
                        index,
                        id: None,
                        status: EmailStatus::Failed,
                        warnings: Vec::new(),
                        error: None,
                    },
                },
            }
        };
        Self { data: fates.iter().enumerate().map(entry).collect() }
    }

    /// The problem of a batch that is sent whole or not at all: each email that cannot be, by its place.
    #[must_use]
    pub fn refused(&self) -> Problem {
        let mut errors = FieldErrors::default();
        for entry in &self.data {
            if let Some(message) = entry.error.as_ref().and_then(|error| error["message"].as_str()) {
                errors.add(&format!("emails[{}]", entry.index), message);
            }
        }
        errors.into()
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
