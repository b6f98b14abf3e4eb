//! `POST /suppressions/check`: what would become of a send to these addresses.

use std::sync::Arc;

use mail::id::SuppressionId;
use mail::suppression::{Reason, Target, category_word};
use serde::Serialize;
use serde_json::{Value, json};
use store::access::Tenant;
use store::suppression::Standing;

use super::add::{BODY_BYTES_MAX, EMAILS_MAX, target};
use super::view::reasons;
use crate::call::{Call, Input, Takes};
use crate::emails::view::Moment;
use crate::fields::{self, Given, Names, Notes};
use crate::problem::Problem;
use crate::room::Room;
use crate::schema::{self, Describe, Schemas};

const NAMES: Names = Names {
    known: &[("emails", "emails")],
    later: &[],
    foreign: &[("email", "emails"), ("EmailAddresses", "emails")],
};

/// What `POST /suppressions/check` takes.
#[derive(Debug)]
pub struct Question {
    targets: Vec<Target>,
}

impl Input for Question {
    const BODY_BYTES_MAX: Option<usize> = Some(BODY_BYTES_MAX);

    fn describe(schemas: &mut Schemas) -> Takes {
        let body = schemas.named("CheckSuppressions", |_| {
            let emails =
                json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": EMAILS_MAX});
            schema::object("Whom to look for", [("emails", emails)])
        });
        Takes { body: Some(body), body_bytes_max: Self::BODY_BYTES_MAX, ..Takes::default() }
    }

    fn read(call: &Call) -> Result<Self, Problem> {
        let mut notes = Notes::default();
        let given = Given::sort(fields::body(&call.body)?, &NAMES, "", &mut notes);
        let mut targets = Vec::new();
        match given.value("emails").map(|emails| fields::list(emails, EMAILS_MAX)) {
            None if given.is_meant("emails") => {}
            None => notes.errors.add("emails", "is required"),
            Some(Err(text)) => notes.errors.add("emails", text),
            Some(Ok(entries)) if entries.is_empty() => notes.errors.add("emails", "has no entries"),
            Some(Ok(entries)) => {
                for (n, entry) in entries.into_iter().enumerate() {
                    match target(entry) {
                        Ok(target) => targets.push(target),
                        Err(text) => notes.errors.add(&format!("emails[{n}]"), text),
                    }
                }
            }
        }
        if notes.errors.is_empty() { Ok(Self { targets }) } else { Err(notes.errors.into()) }
    }
}

/// What is known of one address.
#[derive(Debug, Serialize)]
pub struct Known {
    email: String,
    suppressed: bool,
    reason: Option<Reason>,
    categories: Vec<&'static str>,
    suppression_id: Option<SuppressionId>,
    expires_at: Option<Moment>,
}

/// What is known of each.
#[derive(Debug, Serialize)]
pub struct Checked {
    data: Vec<Known>,
}

impl Describe for Checked {
    fn schema(schemas: &mut Schemas) -> Value {
        schemas.named("SuppressionsChecked", |_| {
            let mut words: Vec<Value> = reasons().into_iter().map(Value::from).collect();
            words.push(Value::Null);
            let known = schema::object(
                "What is known of one",
                [
                    ("email", schema::string("The address")),
                    ("suppressed", schema::boolean("Whether nothing is sent to it")),
                    (
                        "reason",
                        json!({"type": ["string", "null"], "enum": words, "description": "Why, its own or its domain's"}),
                    ),
                    (
                        "categories",
                        schema::list(
                            schema::words(&["product", "newsletter"], "A category"),
                            "What it opted out of",
                        ),
                    ),
                    ("suppression_id", schema::nullable_string("`sup_…`")),
                    ("expires_at", schema::nullable_time("When that ends; null is never")),
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
pub async fn check(room: Arc<Room>, tenant: Tenant, question: Question) -> Result<Checked, Problem> {
    let Question { targets } = question;
    let (store, now) = (room.hall.store(), room.hall.clock().now());
    let standings = store::suppression::standings(store, tenant.account().id, &targets, now).await?;
    let data = targets.iter().zip(standings).map(|(target, Standing { suppression, categories })| Known {
        email: target.to_string(),
        suppressed: suppression.is_some(),
        reason: suppression.as_ref().map(|suppression| suppression.reason),
        categories: categories.into_iter().map(category_word).collect(),
        suppression_id: suppression.as_ref().map(|suppression| suppression.id),
        expires_at: suppression.and_then(|suppression| suppression.expires_at).map(Moment),
    });
    Ok(Checked { data: data.collect() })
}
