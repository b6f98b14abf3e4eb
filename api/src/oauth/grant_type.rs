//! The grant types of the token endpoint.

pub(super) const AUTHORIZATION_CODE: &str = "authorization_code";
pub(super) const REFRESH_TOKEN: &str = "refresh_token";
/// RFC 8628 3.4.
pub(super) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
