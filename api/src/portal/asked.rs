//! What is asked of the portal: a page, or what a form says.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::HOST;
use mail::address::DomainName;
use serde_json::json;

use crate::call::{FromRequest, Media, Request, RequestSpec};
use crate::page;
use crate::problem::Problem;
use crate::schema::{self, Schemas};

/// What a form sends is short; an address with lines of a bank's particulars is the longest.
const FORM_BYTES_MAX: usize = 16 << 10;
/// Fields of a form.
const FIELDS_MAX: usize = 40;

/// What came.
#[derive(Debug, Default)]
pub struct PortalRequest {
    /// The last part of the path.
    pub path_segment: String,
    /// The query.
    pub query: FormFields,
    /// What the form says.
    pub form: FormFields,
    /// The host that was asked.
    pub host: Option<DomainName>,
    /// The header, for its cookies.
    pub headers: HeaderMap,
    /// From where it came.
    pub client_ip: Option<IpAddr>,
    /// Nobody has asked for it yet: HEAD, or a browser that looks ahead.
    pub is_prefetch: bool,
    /// Another site's page sent it.
    pub is_cross_site: bool,
}

/// Fields by name.
#[derive(Debug, Default, Clone)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// A field's text, without space around it; empty when it is not there.
    #[must_use]
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(given, _)| given == name).map_or("", |(_, value)| value.trim())
    }

    /// A field's text, if there is any.
    #[must_use]
    pub fn get_nonempty(&self, name: &str) -> Option<String> {
        Some(self.get(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Whether a box is ticked.
    #[must_use]
    pub fn is_checked(&self, name: &str) -> bool {
        self.get(name) == "on"
    }
}

impl PortalRequest {
    fn from_request(call: &Request, last: &str) -> Result<Self, Problem> {
        let text = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let host = call.headers.get(HOST).and_then(|value| value.to_str().ok());
        let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        let form = std::str::from_utf8(&call.body).unwrap_or_default();
        let form = page::parse_query(form)?;
        if form.len() > FIELDS_MAX {
            return Err(Problem::field("form", "has more fields than any page's"));
        }
        Ok(Self {
            path_segment: call.path_parameter(last).to_owned(),
            query: FormFields(page::parse_query(&call.query)?),
            form: FormFields(form),
            host: name.and_then(|name| name.to_lowercase().parse().ok()),
            headers: call.headers.clone(),
            client_ip: call.client_ip,
            is_prefetch: call.is_head || is_prefetch(&call.headers),
            is_cross_site: text("sec-fetch-site") == "cross-site",
        })
    }
}

/// Browsers and proxies say when nobody has asked for it yet.
fn is_prefetch(headers: &HeaderMap) -> bool {
    ["sec-purpose", "purpose", "x-purpose", "x-moz"].iter().any(|name| {
        let value = headers.get(*name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| {
            let value = value.to_ascii_lowercase();
            value.contains("prefetch") || value.contains("preview") || value.contains("prerender")
        })
    })
}

/// Makes an input of a page, or of a form, that names something in its path.
macro_rules! input {
    ($(#[$doc:meta])* $name:ident, $parameter:literal $about:literal, $words:expr, $form:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub PortalRequest);

        impl FromRequest for $name {
            const BODY_BYTES_MAX: Option<usize> = if $form { Some(FORM_BYTES_MAX) } else { None };
            const MEDIA: Media = if $form { Media::Form } else { Media::Json };

            fn describe(_: &mut Schemas) -> RequestSpec {
                let words: &[&str] = $words;
                let mut parameters = Vec::new();
                if !$parameter.is_empty() {
                    let mut parameter = schema::path_parameter($parameter, $about);
                    if !words.is_empty() {
                        parameter["schema"]["enum"] = json!(words);
                    }
                    parameters.push(parameter);
                }
                let text = json!({"type": "string"});
                let body = json!({
                    "type": "object", "description": "The fields of the page's form",
                    "additionalProperties": text, "example": {"email": "ada@example.org"},
                });
                let body = $form.then_some(body);
                RequestSpec { parameters, body, body_bytes_max: Self::BODY_BYTES_MAX }
            }

            fn read(call: &Request) -> Result<Self, Problem> {
                PortalRequest::from_request(call, $parameter).map(Self)
            }
        }
    };
}

input! {
    /// The portal's door.
    PortalIndex, "" "", &[], false
}
input! {
    /// A page.
    PortalPagePath, "page" "Which page", super::PAGES, false
}
input! {
    /// A form of a page.
    PortalFormPath, "page" "Which form", super::FORMS, true
}
input! {
    /// A link that lets in, or its page.
    PortalLinkPath, "token" "What the link carries", &[], false
}
input! {
    /// The button of a link's page.
    UsePortalLink, "token" "What the link carries", &[], true
}
input! {
    /// A payout.
    PortalPayoutPath, "id" "The payout's id (`pay_…`)", &[], false
}
