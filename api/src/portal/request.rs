//! Requests to the portal: a page or a submitted form.

use std::net::IpAddr;

use http::HeaderMap;
use http::header::HOST;
use message::address::DomainName;

use crate::prelude::*;

/// Longest form body. The longest field is a postal address with bank details.
const FORM_BYTES_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 40;

/// The pages, by the last segment of their path.
pub const PAGES: &[&str] =
    &["home", "links", "referrals", "earnings", "payouts", "settings", "sign-in", "join", "style.css"];

/// The forms, by the last segment of their path.
pub const FORMS: &[&str] = &[
    "sign-in",
    "join",
    "sign-out",
    "accept",
    "add-link",
    "change-link",
    "payout-method",
    "profile",
    "postback",
    "postback-secret",
    "postback-test",
    "mail",
];

/// A request to the portal, with its query and form decoded.
#[derive(Debug, Default)]
pub struct PortalRequest {
    /// The last path segment.
    pub path_segment: String,
    pub query: FormFields,
    pub form: FormFields,
    /// The host of the `Host` header field.
    pub host: Option<DomainName>,
    /// The header section; the cookies are read from it.
    pub headers: HeaderMap,
    pub client_ip: Option<IpAddr>,
    /// A HEAD request or a browser's prefetch: single-use links are not used up.
    pub is_prefetch: bool,
    /// `Sec-Fetch-Site: cross-site`: a page of another site sent the form.
    pub is_cross_site: bool,
}

/// Form fields or query parameters by name.
#[derive(Debug, Default, Clone)]
pub struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// The trimmed value of a field; empty when it is missing.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value.trim())
    }

    /// The trimmed value of a field, unless it is empty.
    pub fn get_nonempty(&self, name: &str) -> Option<String> {
        Some(self.get(name)).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Returns whether a checkbox is ticked.
    pub fn is_checked(&self, name: &str) -> bool {
        self.get(name) == "on"
    }
}

impl PortalRequest {
    fn from_request(call: &Request, last: &str) -> Result<Self> {
        let text = |name: &str| call.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
        let host = call.headers.get(HOST).and_then(|value| value.to_str().ok());
        let name = host.map(|host| host.rsplit_once(':').map_or(host, |(name, _)| name));
        let form = std::str::from_utf8(&call.body).unwrap_or_default();
        let form = paging::parse_query(form)?;
        if form.len() > FIELDS_MAX {
            return Err(Problem::field("form", "has too many fields"));
        }
        Ok(Self {
            path_segment: call.path_parameter(last).to_owned(),
            query: FormFields(paging::parse_query(&call.query)?),
            form: FormFields(form),
            host: name.and_then(|name| name.to_lowercase().parse().ok()),
            headers: call.headers.clone(),
            client_ip: call.client_ip,
            is_prefetch: call.is_prefetch(),
            is_cross_site: text("sec-fetch-site") == "cross-site",
        })
    }
}

fn form_schema(_: &mut Schemas) -> Value {
    json!({
        "type": "object", "description": "The fields of the page's form",
        "additionalProperties": {"type": "string"}, "example": {"email": "ada@example.org"},
    })
}

/// Declares a request type of a page or form, with one path parameter.
macro_rules! input {
    ($(#[$doc:meta])* $name:ident, $parameter:literal $about:literal, $words:expr, $form:literal) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name(pub PortalRequest);

        impl FromRequest for $name {
            const BODY_BYTES_MAX: Option<usize> = if $form { Some(FORM_BYTES_MAX) } else { None };
            const MEDIA: Media = if $form { Media::Form } else { Media::Json };
            const BODY: Option<BodySchema> = if $form { Some(form_schema) } else { None };

            fn parameters() -> Vec<Value> {
                let words: &[&str] = $words;
                let mut parameters = Vec::new();
                if !$parameter.is_empty() {
                    let mut parameter = schema::path_parameter($parameter, $about);
                    if !words.is_empty() {
                        parameter["schema"]["enum"] = json!(words);
                    }
                    parameters.push(parameter);
                }
                parameters
            }

            fn read(call: &Request) -> Result<Self> {
                PortalRequest::from_request(call, $parameter).map(Self)
            }
        }
    };
}

input! {
    /// `GET /portal`.
    PortalIndex, "" "", &[], false
}
input! {
    /// `GET /portal/{page}`.
    PortalPagePath, "page" "The page", PAGES, false
}
input! {
    /// `POST /portal/{page}`.
    PortalFormPath, "page" "The form", FORMS, true
}
input! {
    /// The page of a link, or a link that signs in directly.
    PortalLinkPath, "token" "The secret of the link", &[], false
}
input! {
    /// The button on a link's page.
    UsePortalLink, "token" "The secret of the link", &[], true
}
input! {
    /// The receipt of a payout.
    PortalPayoutPath, "id" "The payout's id (`pay_…`)", &[], false
}
