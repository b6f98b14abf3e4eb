//! A conversion: a sign-up or a new subscription. It is recorded once per id, even if the event arrives repeatedly.

use jiff::Timestamp;
use message::words;
use serde::{Deserialize, Serialize};

use super::counting_status::CountingStatus;
use super::signup_context::{SUBSCRIPTION_STARTED, SignupContext, USER_CREATED};
use crate::id::{AccountId, ProductEventId};

/// Retention of conversions: two years.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(731 * 24 * 3600);

words! {
    /// The number is part of the stored key.
    #[repr(u8)]
    ConversionKind {
        /// `user.created`.
        SignUp = "sign_up" as 1,
        /// `subscription.started`.
        Subscription = "subscription" as 2,
    }
}

impl ConversionKind {
    pub fn from_event_name(name: &str) -> Option<Self> {
        match name {
            USER_CREATED => Some(Self::SignUp),
            SUBSCRIPTION_STARTED => Some(Self::Subscription),
            _ => None,
        }
    }
}

#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Conversion {
    /// The first event that reported the conversion.
    pub event: ProductEventId,
    pub account: AccountId,
    pub kind: ConversionKind,
    /// The product's id of the user or the subscription.
    pub subject: String,
    /// The person's id in the product.
    pub user_id: Option<String>,
    /// The person's email address.
    pub email: Option<String>,
    pub context: SignupContext,
    /// Source of the person's first measured visit.
    pub source: Option<String>,
    /// Monetary value and currency, if the event states them.
    pub value: Option<(f64, Option<String>)>,
    pub occurred_at: Timestamp,
}

/// Returns the kind and the deduplication id of the conversion that an event reports, if the event counts.
pub fn conversion_of_event(
    name: &str,
    user_id: Option<&str>,
    context: &SignupContext,
    status: CountingStatus,
) -> Option<(ConversionKind, String)> {
    let kind = ConversionKind::from_event_name(name).filter(|_| status == CountingStatus::Counted)?;
    let id = match kind {
        ConversionKind::SignUp => context.id.clone().or_else(|| user_id.map(str::to_owned)),
        ConversionKind::Subscription => context.id.clone(),
    };
    Some((kind, id?))
}

/// The monetary value of an event: `value` (or `amount`) and `currency`.
pub fn monetary_value(data: &serde_json::Value) -> Option<(f64, Option<String>)> {
    let number = |name: &str| crate::raw_number::as_f64(&data[name]);
    let value = number("value").or_else(|| number("amount")).filter(|value| value.is_finite())?;
    let currency = data["currency"].as_str().map(str::trim);
    let is_code = |code: &&str| code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic());
    Some((value, currency.filter(is_code).map(str::to_ascii_uppercase)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conversion_events_are_recognised() {
        let with = |id: Option<&str>| SignupContext { id: id.map(str::to_owned), ..SignupContext::default() };
        let counted = CountingStatus::Counted;
        let sign_up = |id: &str| Some((ConversionKind::SignUp, id.to_owned()));
        assert_eq!(conversion_of_event(USER_CREATED, None, &with(Some("u1")), counted), sign_up("u1"));
        assert_eq!(conversion_of_event(USER_CREATED, Some("u2"), &with(None), counted), sign_up("u2"));
        assert_eq!(conversion_of_event(USER_CREATED, None, &with(None), counted), None);
        assert_eq!(conversion_of_event(SUBSCRIPTION_STARTED, Some("u2"), &with(None), counted), None);
        assert_eq!(conversion_of_event("user.activated", None, &with(Some("u1")), counted), None);
        for status in [CountingStatus::Seat, CountingStatus::Excluded] {
            assert_eq!(conversion_of_event(USER_CREATED, None, &with(Some("u1")), status), None);
        }
        assert_eq!(monetary_value(&json!({"amount": 9.5, "currency": "eur"})), Some((9.5, Some("EUR".into()))));
        assert_eq!(monetary_value(&json!({"value": 9, "currency": "euro"})), Some((9.0, None)));
        assert_eq!(monetary_value(&json!({"value": "9"})), None);
    }
}
