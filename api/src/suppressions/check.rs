//! `POST /suppressions/check`: returns the suppressions and opt-outs of up to 1000 addresses.
//!
//! An entry that is not an address gets an error of its own, as in `POST /suppressions`, so the other addresses are
//! answered. An entry that is not a string is refused with 400.

use httpd::problem::BatchEntryError;
use model::suppression::{SuppressionReason, SuppressionTarget};
use store::suppression::AddressSuppression;

use super::add::{BODY_BYTES_MAX, EMAILS_MAX};
use crate::prelude::*;

/// The addresses to check
#[derive(Debug, RequestObject)]
#[schema(name = "CheckSuppressions", body_bytes_max = BODY_BYTES_MAX)]
pub struct CheckSuppressions {
    #[field(
        foreign = ["email", "EmailAddresses"], read = read_targets,
        schema = json!({"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": EMAILS_MAX}),
    )]
    emails: Vec<Result<SuppressionTarget, InvalidTarget>>,
}

/// An entry that is not an address, with the error.
#[derive(Debug)]
struct InvalidTarget {
    text: String,
    message: String,
}

/// An entry that is not an address is answered; one that is not a string is an error.
fn read_targets(
    fields: &ObjectFields<'_>,
    notes: &mut FieldDiagnostics,
) -> Option<Vec<Result<SuppressionTarget, InvalidTarget>>> {
    let Some(value) = fields.value("emails") else {
        if !fields.is_present_or_misnamed("emails") {
            notes.errors.add("emails", "is required");
        }
        return None;
    };
    let entries = fields::parse_list(value, EMAILS_MAX).and_then(|entries| match entries.is_empty() {
        true => Err("has no entries".to_owned()),
        false => Ok(entries),
    });
    let mut targets = Vec::new();
    for (index, entry) in entries.map_err(|text| notes.errors.add("emails", text)).ok()?.into_iter().enumerate() {
        match fields::parse_text(entry) {
            Ok(text) => targets.push(parse_target(&text)),
            Err(error) => notes.errors.add(&format!("emails[{index}]"), error),
        }
    }
    Some(targets)
}

fn parse_target(text: &str) -> Result<SuppressionTarget, InvalidTarget> {
    SuppressionTarget::parse(text).map_err(|error| InvalidTarget { text: text.to_owned(), message: error.to_string() })
}

object_view! {
    /// The result for one address
    pub struct SuppressionStatus, fn from_status(
        target: &SuppressionTarget, status: AddressSuppression;
        let suppression = status.suppression
    ) {
        /// The address in lower case, as used for comparison; an invalid entry is unchanged
        email: String = target.key(),
        /// Whether nothing is sent to the address
        suppressed: bool = suppression.is_some(),
        /// Reason of the suppression of the address or its domain
        reason: Option<SuppressionReason> = suppression.as_ref().map(|suppression| suppression.reason),
        /// Categories that the address opted out of
        #[schema(items = {"type": "string", "enum": ["product", "newsletter"], "description": "A category"})]
        categories: Vec<&'static str> = status.categories.into_iter().map(model::email::Category::word).collect(),
        /// Id of the suppression (`sup_…`)
        suppression_id: Option<SuppressionId> = suppression.as_ref().map(|suppression| suppression.id),
        /// Expiry of the suppression; null means never
        expires_at: Option<JsonTimestamp> =
            suppression.and_then(|suppression| suppression.expires_at).map(JsonTimestamp),
        #[serde(skip_serializing_if = "Option::is_none")]
        /// Present if the entry is not an address
        error: Option<BatchEntryError> = None,
    }
}

/// The results
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "SuppressionsChecked")]
pub struct CheckSuppressionsResponse {
    /// An entry for each address, in the order of the request
    data: Vec<SuppressionStatus>,
}

/// `POST /suppressions/check`.
pub async fn check(state: State, tenant: Tenant, request: CheckSuppressions) -> Result<CheckSuppressionsResponse> {
    let CheckSuppressions { emails: entries } = request;
    let (store, now) = (&state.services.store, state.services.clock.now());
    let targets: Vec<SuppressionTarget> = entries.iter().flatten().cloned().collect();
    let suppressions = store::suppression::list_address_suppressions(store, tenant.account().id, &targets, now).await?;
    let mut suppressions = suppressions.into_iter();
    let data = entries.into_iter().map(|entry| match entry {
        Ok(target) => SuppressionStatus::from_status(&target, suppressions.next().unwrap_or_default()),
        Err(none) => SuppressionStatus::from_invalid(none),
    });
    Ok(CheckSuppressionsResponse { data: data.collect() })
}

impl SuppressionStatus {
    fn from_invalid(none: InvalidTarget) -> Self {
        Self {
            email: none.text,
            suppressed: false,
            reason: None,
            categories: Vec::new(),
            suppression_id: None,
            expires_at: None,
            error: Some(Problem::field("email", none.message).batch_entry_error()),
        }
    }
}
