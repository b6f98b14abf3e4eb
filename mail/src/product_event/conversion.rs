//! A conversion: somebody signed up, or began to pay. It is recorded once for each id, however often the event
//! arrives.

use jiff::Timestamp;

use super::context::{AdClickIds, SUBSCRIPTION_STARTED, SignupContext, USER_CREATED};
use super::standing::CountingStatus;
use crate::id::{AccountId, ProductEventId};

/// For how long conversions are kept: two years.
pub const RETENTION: std::time::Duration = std::time::Duration::from_secs(731 * 24 * 3600);

/// What somebody did. The number is part of the stored key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ConversionKind {
    /// They signed up: `user.created`.
    SignUp = 1,
    /// They began to pay: `subscription.started`.
    Subscription = 2,
}

impl ConversionKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::SignUp, Self::Subscription];

    /// What the event of this name says.
    #[must_use]
    pub fn from_event_name(name: &str) -> Option<Self> {
        match name {
            USER_CREATED => Some(Self::SignUp),
            SUBSCRIPTION_STARTED => Some(Self::Subscription),
            _ => None,
        }
    }

    /// What it is called on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::SignUp => "sign_up",
            Self::Subscription => "subscription",
        }
    }

    /// The kind that is called so.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

/// A conversion.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversion {
    /// The event that told of it first.
    pub event: ProductEventId,
    /// Whose it is.
    pub account: AccountId,
    /// What was done.
    pub kind: ConversionKind,
    /// The id of the user or the subscription, by the product.
    pub subject: String,
    /// Who it was, by the product's id.
    pub user_id: Option<String>,
    /// Who it was, by address.
    pub email: Option<String>,
    /// What the event says about where they came from.
    pub context: SignupContext,
    /// Where their first visit was measured to come from.
    pub source: Option<String>,
    /// What it is worth, in what currency, if the event says so.
    pub value: Option<(f64, Option<String>)>,
    /// When.
    pub occurred_at: Timestamp,
}

/// The conversion that an event tells of, if it is one that counts: its kind and the id that it is recorded by.
#[must_use]
pub fn conversion_of_event(
    name: &str,
    user_id: Option<&str>,
    context: &SignupContext,
    standing: CountingStatus,
) -> Option<(ConversionKind, String)> {
    let kind = ConversionKind::from_event_name(name).filter(|_| standing == CountingStatus::Counted)?;
    let id = match kind {
        ConversionKind::SignUp => context.id.clone().or_else(|| user_id.map(str::to_owned)),
        ConversionKind::Subscription => context.id.clone(),
    };
    Some((kind, id?))
}

/// What an event says that it is worth: `value` (or `amount`) and `currency`.
#[must_use]
pub fn monetary_value(data: &serde_json::Value) -> Option<(f64, Option<String>)> {
    let number = |name: &str| crate::number::as_f64(&data[name]);
    let value = number("value").or_else(|| number("amount")).filter(|value| value.is_finite())?;
    let currency = data["currency"].as_str().map(str::trim);
    let is_code = |code: &&str| code.len() == 3 && code.bytes().all(|b| b.is_ascii_alphabetic());
    Some((value, currency.filter(is_code).map(str::to_ascii_uppercase)))
}

impl Conversion {
    /// The identifiers of the click that it is credited to.
    #[must_use]
    pub fn ad_click_ids(&self) -> &AdClickIds {
        &self.context.clicks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn which_events_are_conversions() {
        let with = |id: Option<&str>| SignupContext { id: id.map(str::to_owned), ..SignupContext::default() };
        let counted = CountingStatus::Counted;
        let sign_up = |id: &str| Some((ConversionKind::SignUp, id.to_owned()));
        assert_eq!(conversion_of_event(USER_CREATED, None, &with(Some("u1")), counted), sign_up("u1"));
        assert_eq!(conversion_of_event(USER_CREATED, Some("u2"), &with(None), counted), sign_up("u2"));
        assert_eq!(conversion_of_event(USER_CREATED, None, &with(None), counted), None);
        assert_eq!(conversion_of_event(SUBSCRIPTION_STARTED, Some("u2"), &with(None), counted), None);
        assert_eq!(conversion_of_event("user.activated", None, &with(Some("u1")), counted), None);
        for standing in [CountingStatus::Seat, CountingStatus::Excluded] {
            assert_eq!(conversion_of_event(USER_CREATED, None, &with(Some("u1")), standing), None);
        }
        assert_eq!(monetary_value(&json!({"amount": 9.5, "currency": "eur"})), Some((9.5, Some("EUR".into()))));
        assert_eq!(monetary_value(&json!({"value": 9, "currency": "euro"})), Some((9.0, None)));
        assert_eq!(monetary_value(&json!({"value": "9"})), None);
    }
}
