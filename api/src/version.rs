//! The requested version of the API: `Service-Version: YYYY-MM-DD`.
//!
//! Paths have no version, and additions are compatible. An incompatible change gets a
//! later version, and applies only to requests with that version. So far there is one version, which is the default.

use http::{HeaderMap, HeaderName};
use httpd::problem::Problem;
use serde_json::{Value, json};

/// The header field in lower case.
pub const HEADER: HeaderName = HeaderName::from_static("service-version");
/// The header field as documented.
const HEADER_TEXT: &str = "Service-Version";
/// All versions, the default last.
pub const ALL: &[&str] = &["2026-11-01"];
/// The version of requests without the field.
pub const DEFAULT: &str = "2026-11-01";

/// Refuses an unknown version.
///
/// # Errors
/// 400 `validation_error`, which names the header field.
pub fn check_version(headers: &HeaderMap) -> Result<(), Problem> {
    let mut fields = headers.get_all(HEADER).iter();
    let (first, second) = (fields.next(), fields.next());
    let Some(requested) = first else { return Ok(()) };
    if second.is_none() && requested.to_str().is_ok_and(|text| ALL.contains(&text.trim())) {
        return Ok(());
    }
    let message = format!("must be a version of the API (YYYY-MM-DD): {}", ALL.join(", "));
    Err(Problem::field(HEADER_TEXT, message))
}

/// The OpenAPI description of the header field.
pub fn parameter() -> Value {
    json!({
        "name": HEADER_TEXT,
        "in": "header",
        "required": false,
        "description": "Version of the API; unknown versions are refused",
        "schema": {"type": "string", "enum": ALL, "default": DEFAULT},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let is_accepted = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, http::HeaderValue::from_static(value));
            }
            check_version(&headers).is_ok()
        };
        assert!(ALL.contains(&DEFAULT) && is_accepted(&[]) && is_accepted(&[DEFAULT]));
        for invalid in [&["2026-11-02"][..], &["2026-11"], &["v1"], &[""], &[DEFAULT, DEFAULT]] {
            assert!(!is_accepted(invalid), "{invalid:?}");
        }
    }
}
