//! JSON views of suppressions.

use mail::id::{EmailId, SuppressionId};
use mail::reply::Enhanced;
use mail::suppression::{Suppression, SuppressionReason, SuppressionSource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::json_timestamp::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// The SMTP reply or DSN that caused a suppression.
#[derive(Debug, Serialize)]
pub struct SuppressionDetailView {
    smtp_code: Option<u16>,
    enhanced_code: Option<Enhanced>,
    diagnostic: String,
}

#[derive(Debug, Serialize)]
pub struct SuppressionView {
    id: SuppressionId,
    email: String,
    reason: SuppressionReason,
    source: SuppressionSource,
    email_id: Option<EmailId>,
    detail: Option<SuppressionDetailView>,
    note: Option<String>,
    expires_at: Option<JsonTimestamp>,
    created_at: JsonTimestamp,
}

impl SuppressionView {
    #[must_use]
    pub fn from_suppression(suppression: &Suppression) -> Self {
        Self {
            id: suppression.id,
            email: suppression.target.key(),
            reason: suppression.reason,
            source: suppression.source,
            email_id: suppression.email,
            detail: suppression.detail.as_ref().map(|detail| SuppressionDetailView {
                smtp_code: detail.smtp_code,
                enhanced_code: detail.enhanced_code,
                diagnostic: detail.diagnostic.clone(),
            }),
            note: suppression.note.clone(),
            expires_at: suppression.expires_at.map(JsonTimestamp),
            created_at: JsonTimestamp(suppression.created_at),
        }
    }
}

/// All reasons, for schemas and error messages.
pub(super) fn reason_words() -> Vec<&'static str> {
    SuppressionReason::ALL.iter().map(|reason| reason.word()).collect()
}

/// All sources, for schemas and error messages.
pub(super) fn source_words() -> Vec<&'static str> {
    SuppressionSource::ALL.iter().map(|source| source.word()).collect()
}

impl ToSchema for SuppressionView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Suppression", |_| {
            let mut detail = schema::object(
                "The reply of the remote host",
                [
                    ("smtp_code", schema::nullable_count("SMTP reply code")),
                    ("enhanced_code", schema::nullable_string("Enhanced status code (RFC 3463)")),
                    ("diagnostic", schema::string("Text of the reply")),
                ],
            );
            detail["type"] = json!(["object", "null"]);
            schema::object(
                "A suppressed address or domain",
                [
                    ("id", schema::string("Id (`sup_…`)")),
                    (
                        "email",
                        schema::string("The address in lower case, as compared; or `@domain.tld` for a whole domain"),
                    ),
                    ("reason", schema::string_enum(&reason_words(), "Reason")),
                    ("source", schema::string_enum(&source_words(), "Source")),
                    ("email_id", schema::nullable_string("The email that caused it")),
                    ("detail", detail),
                    ("note", schema::nullable_string("Note")),
                    ("expires_at", schema::nullable_time("Expiry; null means never")),
                    ("created_at", schema::time("Time of creation")),
                ],
            )
        })
    }
}

/// A page of suppressions.
#[derive(Debug, Serialize)]
pub struct SuppressionList {
    /// Newest first.
    pub suppressions: Vec<SuppressionView>,
    /// True if there are more entries.
    pub has_more: bool,
    pub next_cursor: Option<String>,
}

impl ToSchema for SuppressionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = SuppressionView::schema(schemas);
        schemas.component("SuppressionList", |_| schema::list_page("suppressions", entry))
    }
}

#[derive(Debug, Serialize)]
pub struct SuppressionResponse {
    suppression: SuppressionView,
}

impl SuppressionResponse {
    #[must_use]
    pub fn from_suppression(suppression: &Suppression) -> Self {
        Self { suppression: SuppressionView::from_suppression(suppression) }
    }
}

impl ToSchema for SuppressionResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        let suppression = SuppressionView::schema(schemas);
        schemas.component("OneSuppression", |_| schema::object("A suppression", [("suppression", suppression)]))
    }
}
