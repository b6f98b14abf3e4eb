//! Form bodies of the OAuth endpoints, and parameters of the authorization request: each at most once, and an empty one
//! is as a missing one (RFC 6749 3.1, 3.2).

use std::marker::PhantomData;
use std::net::IpAddr;

use model::oauth::{Audience, OAuthResource};

use super::MCP_PATH;
use super::error::{OAuthError, OAuthErrorCode};
use crate::prelude::*;

/// Decoded names and values. They may contain secrets, so they have no `Debug` form.
#[derive(Clone, Default)]
pub struct OAuthParameters(Vec<(String, String)>);

impl OAuthParameters {
    /// Reads a query or a form.
    ///
    /// # Errors
    /// It is too long or not UTF-8.
    pub fn parse(text: &str) -> Result<Self> {
        paging::parse_query(text).map(Self)
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// `invalid_request` if it is given twice.
    pub fn find(&self, name: &str) -> Result<Option<&str>, OAuthError> {
        let mut found = self.0.iter().filter(|(other, _)| other == name).map(|(_, value)| value.as_str());
        match (found.next(), found.next()) {
            (value, None) => Ok(value),
            _ => Err(OAuthError::request(format!("`{name}` must be given once"))),
        }
    }

    /// The value of a required parameter.
    ///
    /// # Errors
    /// `invalid_request` if it is missing or given twice.
    pub fn require(&self, name: &str) -> Result<&str, OAuthError> {
        self.find(name)?.ok_or_else(|| OAuthError::request(format!("`{name}` is required")))
    }

    /// The audience by the `resource` parameters, which may occur several times (RFC 8707 2); `None` without one.
    ///
    /// # Errors
    /// `invalid_target` for a URI that is no resource of this service.
    pub fn audience(&self, base_url: &str) -> Result<Option<Audience>, OAuthError> {
        let mut audience: Option<Audience> = None;
        for (_, uri) in self.0.iter().filter(|(name, _)| name == "resource") {
            let resource = resource_of(uri, base_url).ok_or_else(|| {
                let text = format!("`resource` must be {base_url} or {base_url}{MCP_PATH}");
                OAuthError::new(OAuthErrorCode::InvalidTarget, text)
            })?;
            audience = Some(audience.map_or_else(|| Audience::of_resource(resource), |other| other.and(resource)));
        }
        Ok(audience)
    }
}

/// The resource with this URI. The slash of an empty path may be left out.
fn resource_of(uri: &str, base_url: &str) -> Option<OAuthResource> {
    match uri.strip_prefix(base_url)? {
        "" | "/" => Some(OAuthResource::Api),
        MCP_PATH => Some(OAuthResource::Mcp),
        _ => None,
    }
}

/// The fields of a form, for the OpenAPI document.
pub trait OAuthFields: Send + 'static {
    const ABOUT: &'static str;
    /// Names that every request must have.
    const REQUIRED: &'static [&'static str];
    /// Names with descriptions.
    const FIELDS: &'static [(&'static str, &'static str)];
}

/// A form body.
pub struct OAuthForm<F> {
    pub(super) parameters: OAuthParameters,
    pub(super) client_ip: Option<IpAddr>,
    fields: PhantomData<fn() -> F>,
}

impl<F: OAuthFields> FromRequest for OAuthForm<F> {
    const BODY_BYTES_MAX: Option<usize> = Some(SMALL_BYTES_MAX);
    const MEDIA: Media = Media::Form;
    const BODY: Option<BodySchema> = Some(|_| {
        let fields = F::FIELDS.iter().map(|(name, description)| (*name, schema::string(description)));
        schema::object_with(F::ABOUT, F::REQUIRED, fields)
    });

    fn read(call: &Request) -> Result<Self> {
        let text = std::str::from_utf8(&call.body).map_err(|_| Problem::field("body", "is not valid UTF-8"))?;
        let parameters = OAuthParameters::parse(text)?;
        Ok(Self { parameters, client_ip: call.client_ip, fields: PhantomData })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_those_of_the_service() {
        let base = "https://api.example";
        let audience = |query: &str| OAuthParameters::parse(query).unwrap().audience(base);
        assert_eq!(audience(""), Ok(None));
        assert_eq!(audience("resource=https://api.example"), Ok(Some(Audience::Api)));
        assert_eq!(audience("resource=https://api.example/"), Ok(Some(Audience::Api)));
        assert_eq!(audience("resource=https://api.example/mcp"), Ok(Some(Audience::Mcp)));
        assert_eq!(audience("resource=https://api.example&resource=https://api.example/mcp"), Ok(Some(Audience::Both)));
        for other in [
            "https://api.example.evil.example",
            "https://api.example/mcp/",
            "https://api.example/other",
            "http://api.example",
            "api",
        ] {
            let refused = audience(&format!("resource={other}")).unwrap_err();
            assert_eq!(refused.code, OAuthErrorCode::InvalidTarget, "{other}");
        }
    }

    #[test]
    fn parameters_are_given_once() {
        let parameters = OAuthParameters::parse("a=1&a=2&b=&c=%2B+x").unwrap();
        assert!(parameters.find("a").is_err());
        assert_eq!(parameters.find("b"), Ok(None));
        assert_eq!(parameters.require("c"), Ok("+ x"));
        assert!(parameters.require("d").is_err());
    }
}
