//! The version of the API that a request asks for: `Service-Version: YYYY-MM-DD`.
//!
//! Paths carry no version, and what is added breaks nobody (completions-email.md 2.2). Should something
//! have to change, it changes for those who ask for a later version than they did; so far there is one, and
//! who asks for none gets it.

use http::{HeaderMap, HeaderName};
use serde_json::{Value, json};

use crate::problem::Problem;

/// The header field.
pub const HEADER: HeaderName = HeaderName::from_static("service-version");
/// How it is written.
const HEADER_TEXT: &str = "Service-Version";
/// The versions that there are, the default last.
pub const ALL: &[&str] = &["2026-11-01"];
/// The version of who asks for none.
pub const DEFAULT: &str = "2026-11-01";

/// Refuses a version that there is not.
///
/// # Errors
/// 400 `validation_error`, which names the header field.
pub fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    let mut fields = headers.get_all(HEADER).iter();
    let (first, another) = (fields.next(), fields.next());
    let Some(asked) = first else { return Ok(()) };
    if another.is_none() && asked.to_str().is_ok_and(|text| ALL.contains(&text.trim())) {
        return Ok(());
    }
    let message = format!("must be a version of the API (YYYY-MM-DD); there is {}", ALL.join(", "));
    Err(Problem::field(HEADER_TEXT, message))
}

/// The header field in the document.
#[must_use]
pub fn parameter() -> Value {
    json!({
        "name": HEADER_TEXT,
        "in": "header",
        "required": false,
        "description": "The version of the API to answer by; another one than these is refused",
        "schema": {"type": "string", "enum": ALL, "default": DEFAULT},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let of = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, http::HeaderValue::from_static(value));
            }
            check_version(&headers).is_ok()
        };
        assert!(ALL.contains(&DEFAULT) && of(&[]) && of(&[DEFAULT]));
        for wrong in [&["2026-11-02"][..], &["2026-11"], &["v1"], &[""], &[DEFAULT, DEFAULT]] {
            assert!(!of(wrong), "{wrong:?}");
        }
    }
}
