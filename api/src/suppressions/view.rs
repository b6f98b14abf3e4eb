//! Suppressions as clients see them.

use mail::id::{EmailId, SuppressionId};
use mail::reply::Enhanced;
use mail::suppression::{Reason, Source, Suppression};
use serde::Serialize;
use serde_json::{Value, json};

use crate::emails::view::Moment;
use crate::schema::{self, Describe, Schemas};

/// What the destination said.
#[derive(Debug, Serialize)]
pub struct DetailView {
    smtp_code: Option<u16>,
    enhanced_code: Option<Enhanced>,
    diagnostic: String,
}

/// A suppression.
#[derive(Debug, Serialize)]
pub struct SuppressionView {
    id: SuppressionId,
    email: String,
    reason: Reason,
    source: Source,
    email_id: Option<EmailId>,
    detail: Option<DetailView>,
    note: Option<String>,
    expires_at: Option<Moment>,
    created_at: Moment,
}

impl SuppressionView {
    /// What is shown of a suppression.
    #[must_use]
    pub fn of(suppression: &Suppression) -> Self {
        Self {
            id: suppression.id,
            email: suppression.target.key(),
            reason: suppression.reason,
            source: suppression.source,
            email_id: suppression.email,
            detail: suppression.detail.as_ref().map(|detail| DetailView {
                smtp_code: detail.smtp_code,
                enhanced_code: detail.enhanced_code,
                diagnostic: detail.diagnostic.clone(),
            }),
            note: suppression.note.clone(),
            expires_at: suppression.expires_at.map(Moment),
            created_at: Moment(suppression.created_at),
        }
    }
}

/// The words of the reasons.
pub(super) fn reasons() -> Vec<&'static str> {
    Reason::ALL.iter().map(|reason| reason.word()).collect()
}

/// The words of the sources.
pub(super) fn sources() -> Vec<&'static str> {
    Source::ALL.iter().map(|source| source.word()).collect()
}

impl Describe for SuppressionView {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("Suppression", |_| {
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
                    ("email", schema::string("The address in lower case, as it is compared; or `@domain.tld` for all of a domain's")),
                    ("reason", schema::words(&reasons(), "Why")),
                    ("source", schema::words(&sources(), "Who said so")),
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

impl Describe for SuppressionList {
    fn schema(schemas: &mut Schemas) -> Value {
        let entry = SuppressionView::schema(schemas);
        schemas.named("SuppressionList", |_| schema::page("suppressions", entry))
    }
}

/// A suppression by itself.
#[derive(Debug, Serialize)]
pub struct OneSuppression {
    suppression: SuppressionView,
}

impl OneSuppression {
    /// What is shown of a suppression.
    #[must_use]
    pub fn of(suppression: &Suppression) -> Self {
        Self { suppression: SuppressionView::of(suppression) }
    }
}

impl Describe for OneSuppression {
    fn schema(schemas: &mut Schemas) -> Value {
        let suppression = SuppressionView::schema(schemas);
        schemas.named("OneSuppression", |_| schema::object("A suppression", [("suppression", suppression)]))
    }
}
