//! `POST /suppressions/check`: what would become of a send to these addresses.
//!
//! A text that is no address is answered as one, with an error, as `POST /suppressions` does: who checks a
//! thousand addresses learns of the others all the same. What is no text at all is a caller's mistake: 400.

use std::sync::Arc;

use mail::id::SuppressionId;
use mail::suppression::{SuppressionReason, SuppressionTarget, category_word};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;
use store::suppression::AddressSuppression;

use super::add::{BODY_BYTES_MAX, EMAILS_MAX};
use super::view::reason_words;
use crate::call::{FromRequest, Request, RequestSpec};
use crate::emails::view::JsonTimestamp;
use crate::fields::{self, FieldDiagnostics, FieldNames};
use crate::problem::Problem;
use crate::room::AppState;
use crate::schema::{self, Schemas, ToSchema};

const NAMES: FieldNames =
    FieldNames { known: &[("emails", "emails")], foreign: &[("email", "emails"), ("EmailAddresses", "emails")] };

/// What `POST /suppressions/check` takes.
#[derive(Debug)]
pub struct CheckSuppressions {
    targets: Vec<Result<SuppressionTarget, InvalidTarget>>,
}

/// An entry that is no address: what it says, and what is wrong with it.
#[derive(Debug)]
struct InvalidTarget {
    given: String,
    message: String,
}

impl FromRequest for CheckSuppressions {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> RequestSpec {
        let body = schemas.component("CheckSuppressions", |_| {
            let emails = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": EMAILS_MAX});
            schema::object("Whom to look for", [("emails", emails)])
        });
        RequestSpec { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..RequestSpec::default() }
    }

    fn read(call: &Request) -> Result<Self, Problem> {
        let mut notes = FieldDiagnostics::default();
        let given = call.body_fields(&NAMES, &mut notes)?;
        let mut asked = Vec::new();
        match given.value("emails").map(|emails| fields::parse_list(emails, EMAILS_MAX)) {
            None if given.is_present_or_misnamed("emails") => {}
            None => notes.errors.add("emails", "is required"),
            Some(Err(text)) => notes.errors.add("emails", text),
            Some(Ok(entries)) if entries.is_empty() => notes.errors.add("emails", "has no entries"),
            Some(Ok(entries)) => {
                for (index, entry) in entries.into_iter().enumerate() {
                    match fields::parse_text(entry) {
                        Ok(text) => asked.push(Self::parse_target(&text)),
                        Err(wrong) => notes.errors.add(&format!("emails[{index}]"), wrong),
                    }
                }
            }
        }
        if notes.errors.is_empty() { Ok(Self { targets: asked }) } else { Err(notes.errors.into()) }
    }
}

impl CheckSuppressions {
    fn parse_target(text: &str) -> Result<SuppressionTarget, InvalidTarget> {
        SuppressionTarget::parse(text)
            .map_err(|error| InvalidTarget { given: text.to_owned(), message: error.to_string() })
    }
}

/// What is known of one address.
#[derive(Debug, Serialize)]
pub struct SuppressionStatus {
    email: String,
    suppressed: bool,
    reason: Option<SuppressionReason>,
    categories: Vec<&'static str>,
    suppression_id: Option<SuppressionId>,
    expires_at: Option<JsonTimestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

/// What is known of each.
#[derive(Debug, Serialize)]
pub struct CheckSuppressionsResponse {
    data: Vec<SuppressionStatus>,
}

impl ToSchema for CheckSuppressionsResponse {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.component("SuppressionsChecked", |_| {
            let mut words: Vec<Value> = reason_words().into_iter().map(Value::from).collect();
            words.push(Value::Null);
            let known = schema::object_with(
                "What is known of one",
                &["email", "suppressed", "reason", "categories", "suppression_id", "expires_at"],
                [
                    ("email", schema::string("The address in lower case, as it is compared; as it was given, when it is none")),
                    ("suppressed", schema::boolean("Whether nothing is sent to it")),
                    (
                        "reason",
                        json!({"type": ["string", "null"], "enum": words, "description": "Why, its own or its domain's"}),
                    ),
                    (
                        "categories",
                        schema::list(
                            schema::string_enum(&["product", "newsletter"], "A category"),
                            "What it opted out of",
                        ),
                    ),
                    ("suppression_id", schema::nullable_string("`sup_…`")),
                    ("expires_at", schema::nullable_time("When that ends; null is never")),
                    (
                        "error",
                        schema::object_with(
                            "It is no address; not there when it is one",
                            &["message", "code"],
                            [
                                ("message", schema::string("What is wrong with it")),
                                ("code", schema::string_enum(&["validation_error"], "Its code")),
                                ("details", json!({"type": "object", "description": "Each field by its name"})),
                            ],
                        ),
                    ),
                ],
            );
            schema::object("What is known", [("data", schema::list(known, "An entry for each, in their order"))])
        })
    }
}

/// `POST /suppressions/check`.
///
/// # Errors
/// The store cannot be read.
pub async fn check(
    room: Arc<AppState>,
    tenant: Tenant,
    question: CheckSuppressions,
) -> Result<CheckSuppressionsResponse, Problem> {
    let CheckSuppressions { targets: asked } = question;
    let (store, now) = (room.intake.store(), room.intake.clock().now());
    let targets: Vec<SuppressionTarget> = asked.iter().flatten().cloned().collect();
    let standings = store::suppression::list_address_suppressions(store, tenant.account().id, &targets, now).await?;
    let mut standings = standings.into_iter();
    let data = asked.into_iter().map(|one| match one {
        Ok(target) => SuppressionStatus::from_status(&target, standings.next().unwrap_or_default()),
        Err(none) => SuppressionStatus::from_invalid(none),
    });
    Ok(CheckSuppressionsResponse { data: data.collect() })
}

impl SuppressionStatus {
    fn from_status(
        target: &SuppressionTarget,
        AddressSuppression { suppression, categories }: AddressSuppression,
    ) -> Self {
        Self {
            email: target.key(),
            suppressed: suppression.is_some(),
            reason: suppression.as_ref().map(|suppression| suppression.reason),
            categories: categories.into_iter().map(category_word).collect(),
            suppression_id: suppression.as_ref().map(|suppression| suppression.id),
            expires_at: suppression.and_then(|suppression| suppression.expires_at).map(JsonTimestamp),
            error: None,
        }
    }

    fn from_invalid(none: InvalidTarget) -> Self {
        Self {
            email: none.given,
            suppressed: false,
            reason: None,
            categories: Vec::new(),
            suppression_id: None,
            expires_at: None,
            error: Some(Problem::field("email", none.message).batch_entry_error()),
        }
    }
}
