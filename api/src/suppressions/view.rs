//! Suppressions as clients see them.

use mail::id::{EmailId, SuppressionId};
use mail::reply::Enhanced;
use mail::suppression::{Suppression, SuppressionReason, SuppressionSource};
use serde::Serialize;
use serde_json::{Value, json};

use crate::emails::view::JsonTimestamp;
use crate::schema::{self, Schemas, ToSchema};

/// What the destination said.
#[derive(Debug, Serialize)]
pub struct SuppressionDetailView {
    smtp_code: Option<u16>,
    enhanced_code: Option<Enhanced>,
    diagnostic: String,
}

/// A suppression.
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
    /// What is shown of a suppression.
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

/// The words of the reasons.
pub(super) fn reason_words() -> Vec<&'static str> {
    SuppressionReason::ALL.iter().map(|reason| reason.word()).collect()
}

/// The words of the sources.
pub(super) fn source_words() -> Vec<&'static str> {
    SuppressionSource::ALL.iter().map(|source| source.word()).collect()
}

impl ToSchema for SuppressionView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("Suppression", |_| {
            let mut detail = schema::object(
                "What the destination said",
                [
                    ("smtp_code", schema::nullable_count("The reply code")),
                    ("enhanced_code", schema::nullable_string("The enhanced status code (RFC 3463)")),
                    ("diagnostic", schema::string("In its words")),
                ],
            );
            detail["type"] = json!(["object", "null"]);
            schema::object(
                "Somebody to whom nothing is sent",
                [
                    ("id", schema::string("`sup_…`")),
                    (
                        "email",
                        schema::string(
                            "The address in lower case, as it is compared; or `@domain.tld` for all of a domain's",
                        ),
                    ),
                    ("reason", schema::string_enum(&reason_words(), "Why")),
                    ("source", schema::string_enum(&source_words(), "Who said so")),
                    ("email_id", schema::nullable_string("The email that it came of")),
                    ("detail", detail),
                    ("note", schema::nullable_string("What was noted")),
                    ("expires_at", schema::nullable_time("When it ends; null is never")),
                    ("created_at", schema::time("When it began")),
                ],
            )
        })
    }
}

/// A page of suppressions.
#[derive(Debug, Serialize)]
pub struct SuppressionList {
    /// The suppressions, newest first.
    pub suppressions: Vec<SuppressionView>,
    /// Whether there are more.
    pub has_more: bool,
    /// Where they begin.
    pub next_cursor: Option<String>,
}

impl ToSchema for SuppressionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = SuppressionView::schema(schemas);
        schemas.component("SuppressionList", |_| schema::list_page("suppressions", entry))
    }
}

/// A suppression by itself.
#[derive(Debug, Serialize)]
pub struct SuppressionResponse {
    suppression: SuppressionView,
}

impl SuppressionResponse {
    /// What is shown of a suppression.
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
