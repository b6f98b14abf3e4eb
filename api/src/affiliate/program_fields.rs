//! Fields of the program that its set-up, its settings and its responses share.

use ::affiliate::onboarding::check_page;
use queue::client::http::URL_BYTES_MAX;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::fields;

/// Parses the URL of a page and returns it unchanged.
pub(super) fn parse_page_url(value: &RawValue) -> Result<String, String> {
    let text = fields::parse_header_line(value, URL_BYTES_MAX)?.trim().to_owned();
    check_page(&text).map(|()| text)
}

pub(super) fn page_url_schema(description: &str) -> Value {
    json!({
        "type": "string", "format": "uri", "maxLength": URL_BYTES_MAX,
        "examples": ["https://shop.example"], "description": description,
    })
}

pub(super) fn currency_schema(description: &str) -> Value {
    json!({
        "type": "string", "pattern": "^[A-Za-z]{3}$", "examples": ["usd"], "description": description,
    })
}
