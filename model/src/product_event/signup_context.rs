//! Sign-up source context in `data`.
//!
//! All keys are optional, and an invalid value never rejects the event: it is ignored.

use message::percent;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of the sign-up event.
pub const USER_CREATED: &str = "user.created";
/// Name of the event for a new paying subscription.
pub const SUBSCRIPTION_STARTED: &str = "subscription.started";

/// Maximum length of a value, in bytes; longer ones are truncated.
pub const VALUE_BYTES_MAX: usize = 512;
/// Maximum length of an `rnl_ad` cookie that is parsed as JSON.
const AD_BYTES_MAX: usize = 4 * 1024;

/// Click identifiers of an advertisement.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AdClickIds {
    /// Click on the web.
    pub gclid: Option<String>,
    /// Click in an app that led to the web.
    pub gbraid: Option<String>,
    /// Click on the web that led to an app.
    pub wbraid: Option<String>,
}

impl AdClickIds {
    pub fn is_empty(&self) -> bool {
        self.gclid.is_none() && self.gbraid.is_none() && self.wbraid.is_none()
    }

    /// Reads the identifiers from an object, or else from the cookie `rnl_ad` in it.
    pub fn from_data(data: &Value) -> Self {
        // The cookie is an object or its JSON text, optionally percent-encoded.
        let cookie = match &data["rnl_ad"] {
            Value::String(text) => parse_cookie(text),
            other => other.clone(),
        };
        let find = |key: &str| id_text(&data[key]).or_else(|| id_text(&cookie[key]));
        Self { gclid: find("gclid"), gbraid: find("gbraid"), wbraid: find("wbraid") }
    }
}

fn parse_cookie(text: &str) -> Value {
    if text.len() > AD_BYTES_MAX {
        return Value::Null;
    }
    let read = |text: &str| match crate::json::has_reserved_name(text.as_bytes()) {
        true => None,
        false => serde_json::from_str(text).ok(),
    };
    read(text).or_else(|| read(&percent::decode_lenient(text))).unwrap_or_default()
}

/// The source of a sign-up or subscription.
#[message::row::omit_empty]
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SignupContext {
    /// The id of the user or the subscription.
    pub id: Option<String>,
    /// The cookie `stx_vid`.
    pub visitor_id: Option<String>,
    pub clicks: AdClickIds,
    /// The product's own name of the origin.
    pub came_from: Option<String>,
    pub signup_method: Option<String>,
    /// The person joined an existing account.
    pub invited: bool,
    /// The person is a member of the customer's own team.
    pub internal: bool,
}

impl SignupContext {
    /// Reads the context from an event's `data`.
    pub fn from_event_data(data: &Value) -> Self {
        Self {
            id: id_text(&data["id"]),
            visitor_id: id_text(&data["visitor_id"]),
            clicks: AdClickIds::from_data(data),
            came_from: id_text(&data["came_from"]),
            signup_method: id_text(&data["signup_method"]),
            invited: is_true(&data["invited"]),
            internal: is_true(&data["internal"]),
        }
    }
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(yes) => *yes,
        Value::String(text) => text == "true",
        _ => false,
    }
}

/// A text, or a whole number as text: products use both for ids.
fn id_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        number => {
            let digits = crate::raw_number::digits(number)?;
            let whole = digits.strip_prefix('-').unwrap_or(&digits).bytes().all(|byte| byte.is_ascii_digit());
            if !whole {
                return None;
            }
            digits.into_owned()
        }
    };
    Some(truncate(&text, VALUE_BYTES_MAX)).filter(|text| !text.is_empty())
}

/// Truncates a text to a number of bytes and drops control characters.
pub fn truncate(text: &str, bytes_max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(bytes_max));
    for c in text.chars().filter(|c| !c.is_control()) {
        if out.len() + c.len_utf8() > bytes_max {
            break;
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_signup_context_is_read_from_event_data() {
        let data = json!({"id": 7, "visitor_id": "v1", "gclid": " abc ", "came_from": "", "signup_method": "google",
                          "invited": true, "internal": "true"});
        let context = SignupContext::from_event_data(&data);
        assert_eq!((context.id.as_deref(), context.visitor_id.as_deref()), (Some("7"), Some("v1")));
        assert_eq!(context.clicks, AdClickIds { gclid: Some("abc".into()), ..AdClickIds::default() });
        assert_eq!((context.came_from, context.signup_method.as_deref()), (None, Some("google")));
        assert!(context.invited && context.internal);
        let long = crate::raw_number::parse(r#"{"id":12345678901234567890123,"visitor_id":1.5}"#).unwrap();
        let context = SignupContext::from_event_data(&long);
        assert_eq!((context.id.as_deref(), context.visitor_id), (Some("12345678901234567890123"), None));
        // Invalid values do not fail.
        for odd in [json!(null), json!([]), json!({"id": {}, "gclid": [], "rnl_ad": 3, "invited": "no"})] {
            assert_eq!(SignupContext::from_event_data(&odd), SignupContext::default(), "{odd}");
        }
    }

    #[test]
    fn ad_click_ids_are_read_from_the_cookie() {
        let wanted = AdClickIds { gclid: Some("g".into()), wbraid: Some("w".into()), gbraid: None };
        for cookie in [
            json!({"gclid": "g", "wbraid": "w"}),
            json!("{\"gclid\":\"g\",\"wbraid\":\"w\",\"t\":1}"),
            json!("%7B%22gclid%22%3A%22g%22%2C%22wbraid%22%3A%22w%22%7D"),
        ] {
            assert_eq!(AdClickIds::from_data(&json!({"rnl_ad": cookie})), wanted, "{cookie}");
        }
        let both = json!({"gclid": "own", "rnl_ad": {"gclid": "cookie"}});
        assert_eq!(AdClickIds::from_data(&both).gclid.as_deref(), Some("own"));
        assert!(AdClickIds::from_data(&json!({"rnl_ad": "x".repeat(10_000)})).is_empty());
        assert!(AdClickIds::from_data(&json!({"rnl_ad": "{\"gclid\":"})).is_empty());
        assert_eq!(truncate("äöü\u{0}", 5), "äö");
    }
}
