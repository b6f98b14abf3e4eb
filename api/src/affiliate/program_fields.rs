//! `PageUrl`: the URL of a page in the settings of a program.

use ::affiliate::program::onboarding::check_page;
use httpd::request_object::RequestValue;
use net::http_client::URL_BYTES_MAX;

use crate::prelude::*;

/// The URL of a page, unchanged.
pub(super) struct PageUrl;

impl RequestValue for PageUrl {
    type Value = String;

    fn schema(_: &mut Schemas) -> Value {
        json!({"type": "string", "format": "uri", "maxLength": URL_BYTES_MAX, "examples": ["https://shop.example"]})
    }

    fn parse(value: &RawValue) -> Result<String, String> {
        let text = fields::parse_header_line(value, URL_BYTES_MAX)?.trim().to_owned();
        check_page(&text).map(|()| text)
    }
}
