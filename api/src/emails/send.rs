//! Send request: parses the body of `POST /emails`.
//!
//! All errors are reported at once. Unknown fields are ignored and named in `warnings`.

use http::HeaderMap;
use httpd::fields::JsonObject;
use httpd::request::SEND_BYTES_MAX;
use model::email::EmailStatus;
use queue::intake::SubmitReceipt;
use queue::intake::idempotency::IdempotencyKey;
use serde::Deserialize;

use super::send_email::SendEmail;
use super::send_fields::{self, FIELDS, IDEMPOTENCY_KEY};
use crate::idempotency;
use crate::prelude::*;
use crate::request_fingerprint::RequestFingerprint;

/// A parsed send request.
#[derive(Debug)]
pub struct SendRequest {
    pub email: SendEmail,
    /// Warnings about ignored fields.
    pub warnings: Vec<String>,
    /// The idempotency key, if one was given.
    pub claim: Option<IdempotencyKey>,
}

impl SendRequest {
    pub fn from_json(body: &[u8]) -> Result<Self> {
        Self::from_parts(body, &HeaderMap::new())
    }

    fn from_parts(body: &[u8], header: &HeaderMap) -> Result<Self> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(fields::parse_body(body)?, &FIELDS, "", &mut notes);
        if fields.is_present_or_misnamed(IDEMPOTENCY_KEY) {
            let text = "is accepted only in a batch; use the header `Idempotency-Key`";
            notes.errors.add(IDEMPOTENCY_KEY, text);
        }
        let request = Self::from_fields(&fields, notes)?;
        let claim = idempotency::parse_claim(header, || request.fingerprint())?;
        Ok(Self { claim, ..request })
    }

    /// Parses one email of a batch.
    pub(super) fn from_batch_item(item: JsonObject<'_>) -> Result<Self> {
        let mut notes = FieldDiagnostics::default();
        let fields = ObjectFields::from_object(item, &FIELDS, "", &mut notes);
        let request = Self::from_fields(&fields, notes)?;
        let Some(key) = fields.value(IDEMPOTENCY_KEY) else { return Ok(request) };
        let key = fields::parse_text(key).ok().and_then(|text| idempotency::validate_key(&text));
        let key = key.ok_or_else(|| idempotency::invalid_key(IDEMPOTENCY_KEY))?;
        let claim = Some(IdempotencyKey { key, fingerprint: request.fingerprint() });
        Ok(Self { claim, ..request })
    }

    fn fingerprint(&self) -> String {
        let mut fingerprint = RequestFingerprint::new();
        send_fields::add_to_fingerprint(&mut fingerprint, &self.email, &self.warnings);
        fingerprint.finish()
    }

    fn from_fields(fields: &ObjectFields<'_>, mut notes: FieldDiagnostics) -> Result<Self> {
        let mut email = SendEmail::default();
        FIELDS.iter().for_each(|field| (field.read)(&mut email, fields, &mut notes));
        match notes.errors.is_empty() {
            true => Ok(Self { email, warnings: notes.warnings, claim: None }),
            false => Err(notes.errors.into()),
        }
    }
}

impl FromRequest for SendRequest {
    const BODY_BYTES_MAX: Option<usize> = Some(SEND_BYTES_MAX);
    const BODY: Option<BodySchema> =
        Some(|schemas| schemas.component("SendRequest", |_| send_fields::send_schema(IDEMPOTENCY_KEY)));

    fn parameters() -> Vec<Value> {
        vec![idempotency::header_parameter()]
    }

    fn read(call: &Request) -> Result<Self> {
        Self::from_parts(&call.body, &call.headers)
    }
}

/// The email was accepted
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(name = "Sent")]
pub struct SendResponse {
    /// The email's id (`msg_…`)
    pub id: EmailId,
    /// The email is stored and will be delivered
    #[schema(as = String, enum = ["sent", "scheduled"])]
    pub status: EmailStatus,
    /// Warnings, for example about ignored fields
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SendResponse {
    /// Builds the response from the intake's receipt and the warnings.
    pub fn from_accepted(accepted: &SubmitReceipt, warnings: &[String]) -> Self {
        let skipped = |address| format!("{address} is suppressed and was skipped");
        let warnings = warnings.iter().cloned().chain(accepted.skipped.iter().map(skipped)).collect();
        Self { id: accepted.id, status: accepted.status, warnings }
    }
}
