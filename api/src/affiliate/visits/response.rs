//! Response to a reported visit: the visit that gets the credit, or 204. Sets cookies if the endpoint is called below
//! the site's own host.

use ::affiliate::api_objects::ApiTimestamp;
use ::affiliate::visits::CapturedVisit;
use http::header::{HeaderName, HeaderValue, SET_COOKIE};
use httpd::response::{CookiePolicy, ExtraResponse, IntoResponse, Response};
use model::product_event::site_visit::RETENTION;

use crate::prelude::*;

/// Partner names are truncated to this length: the script reads no more, and cookies are small.
const NAME_CHARS_MAX: usize = 100;

/// The partner
#[derive(Debug, Serialize, ToSchema)]
struct PublicPartnerView {
    /// The partner's id (`aff_…`)
    id: PartnerId,
    /// The name
    name: String,
    /// The given name
    first_name: Option<String>,
}

/// The visitor's visit that gets the credit, according to the program's `attribution`
#[derive(Debug, Serialize, ToSchema)]
#[schema(name = "StandingAffiliateVisit")]
struct VisitView {
    /// The visit (`vis_…`), for `client_reference_id`
    referral: VisitId,
    affiliate: Option<PublicPartnerView>,
    /// When the visit expires
    expires_at: ApiTimestamp,
}

/// The visitor's visit that gets the credit; `None` is answered 204.
#[derive(Debug)]
pub struct VisitResponse {
    headers: Vec<(HeaderName, HeaderValue)>,
    visit: Option<VisitView>,
}

impl VisitResponse {
    /// No visit is credited.
    pub(super) fn none(headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        Self { headers, visit: None }
    }

    /// The credited visit.
    pub(super) fn from_capture(captured: &CapturedVisit, headers: Vec<(HeaderName, HeaderValue)>) -> Self {
        let cut = |text: &str| text.chars().take(NAME_CHARS_MAX).collect::<String>();
        let affiliate = captured.partner.as_ref().map(|partner| PublicPartnerView {
            id: partner.id,
            name: cut(&partner.name()),
            first_name: partner.first_name.as_deref().map(cut),
        });
        let expires_at = ApiTimestamp(captured.visit.expires_at);
        Self { headers, visit: Some(VisitView { referral: captured.visit.id, affiliate, expires_at }) }
    }

    /// Adds cookies for the site's domain; `Secure` only if the page uses https. Browsers keep a server's cookies
    /// longer than a script's.
    pub(super) fn with_cookies(mut self, site: Option<(&str, bool)>, visitor: Option<&str>, now: Timestamp) -> Self {
        let (Some((domain, is_secure)), Some(visit)) = (site, &self.visit) else { return self };
        let rest = visit.expires_at.0.duration_since(now).as_secs().max(0);
        let secure = if is_secure { "; Secure" } else { "" };
        let affiliate = serde_json::to_string(&visit.affiliate).unwrap_or_default();
        let cookies = [
            Some(("stx_ref", visit.referral.to_string(), rest)),
            Some(("stx_aff", encode_uri_component(&affiliate), rest)),
            visitor.map(|visitor| ("stx_vid", visitor.to_owned(), RETENTION.as_secs().cast_signed())),
        ];
        for (name, value, seconds) in cookies.into_iter().flatten() {
            let domain = domain.trim_start_matches('.');
            let cookie = format!("{name}={value}; Path=/; Domain={domain}; Max-Age={seconds}; SameSite=Lax{secure}");
            self.headers.extend(HeaderValue::from_str(&cookie).ok().map(|value| (SET_COOKIE, value)));
        }
        self
    }
}

/// Percent-encodes like `encodeURIComponent`, which the script decodes (ECMA-262 19.2.6.4).
fn encode_uri_component(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.!~*'()".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.extend(char::from_digit(digit.into(), 16).map(|digit| digit.to_ascii_uppercase()));
            }
        }
    }
    out
}

impl IntoResponse for VisitResponse {
    const COOKIES: CookiePolicy = CookiePolicy::Visitor;
    const EXTRA_RESPONSES: &'static [ExtraResponse] =
        &[ExtraResponse::empty(204, "The token is unknown or not active: no visit is recorded")];

    fn describe(schemas: &mut Schemas) -> Value {
        VisitView::schema(schemas)
    }

    fn into_response(self) -> Result<Response> {
        let (status, body) = match &self.visit {
            Some(visit) => (StatusCode::OK, serde_json::to_vec(visit).map_err(Problem::internal)?.into()),
            None => (StatusCode::NO_CONTENT, Bytes::new()),
        };
        Ok(Response::new(status, Self::MEDIA_TYPE, self.headers, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_matches_browsers() {
        assert_eq!(
            encode_uri_component("{\"name\":\"Ädä L; x\"}"),
            "%7B%22name%22%3A%22%C3%84d%C3%A4%20L%3B%20x%22%7D"
        );
        assert_eq!(encode_uri_component("a-z_0.9!~*'()"), "a-z_0.9!~*'()");
    }
}
