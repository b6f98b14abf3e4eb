//! Credentials for a DNS provider, parsed from JSON. All errors are reported at once, by field.
//!
//! ```text
//! {"api_token": "…"} ─► ProviderCredentials::parse ─► ProviderCredentials { login } ─► the provider's client
//!                                                     └► secret_json ─► sealed, if the customer stores the credentials
//! ```
//!
//! The fields of each provider are a table ([`Provider::credential_fields`]), which the API document, the dashboard, the
//! messages and the parser share. Values are [`SecretText`]s: the `Debug` output of credentials shows only the provider.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use message::address::DomainName;
use serde_json::{Map, Value};

use super::Provider;
use super::secret::SecretText;
use super::server::ServerAddress;

/// Maximum length of a value in bytes.
const VALUE_BYTES_MAX: usize = 4_096;
/// Maximum number of reported errors.
const ERRORS_MAX: usize = 20;
/// Maximum characters of an unknown field's name in an error.
const NAME_SHOWN_CHARS_MAX: usize = 64;

/// A field of a provider's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialField {
    pub name: &'static str,
    /// The name for people.
    pub label: &'static str,
    pub required: bool,
    /// A value that is not secret may be shown.
    pub secret: bool,
}

/// An error in one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialFieldError {
    /// The name of the field; empty if the value is not an object.
    pub field: String,
    /// The error, as the end of a sentence that begins with the name.
    pub message: String,
}

/// Valid credentials of one provider.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderCredentials {
    provider: Provider,
    values: Vec<(CredentialField, SecretText)>,
    pub(super) login: ProviderLogin,
}

/// The credentials in the form that the provider's client needs.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ProviderLogin {
    /// One API token.
    Token(SecretText),
    /// Two values, such as a key and a secret, in the order of the provider's fields.
    Pair(SecretText, SecretText),
    Aws(AwsKeys),
    /// TSIG (RFC 8945).
    Tsig(TsigKey),
}

/// Keys for Route 53.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct AwsKeys {
    pub(super) id: SecretText,
    pub(super) secret: SecretText,
    pub(super) session: Option<SecretText>,
    pub(super) region: Option<String>,
    pub(super) zone_id: Option<String>,
}

/// A key for dynamic updates and the server that accepts it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TsigKey {
    pub(super) server: ServerAddress,
    pub(super) name: DomainName,
    pub(super) algorithm: TsigAlgorithm,
    pub(super) key: Vec<u8>,
}

/// The HMAC algorithms of RFC 8945 6 that are considered secure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TsigAlgorithm {
    Sha256,
    Sha384,
    Sha512,
}

pub(super) const fn secret(name: &'static str, label: &'static str) -> CredentialField {
    CredentialField { name, label, required: true, secret: true }
}

pub(super) const fn plain(name: &'static str, label: &'static str) -> CredentialField {
    CredentialField { name, label, required: true, secret: false }
}

pub(super) const fn optional(field: CredentialField) -> CredentialField {
    CredentialField { required: false, ..field }
}

impl ProviderCredentials {
    /// Parses a provider's credentials from a JSON object.
    ///
    /// # Errors
    /// All errors, at most twenty, never empty.
    pub fn parse(provider: Provider, value: &Value) -> Result<Self, Vec<CredentialFieldError>> {
        let Value::Object(object) = value else {
            return Err(vec![CredentialFieldError { field: String::new(), message: "must be an object".to_owned() }]);
        };
        let mut errors = Vec::new();
        let values = collect_values(provider, object, &mut errors);
        if !errors.is_empty() {
            errors.truncate(ERRORS_MAX);
            return Err(errors);
        }
        let login = CredentialReader { values: &values }.login(provider).map_err(|error| vec![error])?;
        Ok(Self { provider, values, login })
    }

    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The JSON object that [`ProviderCredentials::parse`] parses. It must be sealed, and neither shown nor logged.
    pub fn secret_json(&self) -> SecretText {
        let object: Map<String, Value> =
            self.values.iter().map(|(field, value)| (field.name.to_owned(), Value::from(value.expose()))).collect();
        SecretText::new(Value::Object(object).to_string())
    }

    /// A text from the provider, with the secrets in it replaced.
    pub(super) fn redact(&self, text: &str) -> String {
        let secrets = self.values.iter().filter(|(field, _)| field.secret);
        secrets.fold(text.to_owned(), |text, (_, value)| value.redact(&text))
    }
}

impl fmt::Debug for ProviderCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// Collects the values by field and adds errors to `errors`.
fn collect_values(
    provider: Provider,
    object: &Map<String, Value>,
    errors: &mut Vec<CredentialFieldError>,
) -> Vec<(CredentialField, SecretText)> {
    let table = provider.credential_fields();
    for name in object.keys().filter(|name| !table.iter().any(|field| field.name == *name)).take(ERRORS_MAX) {
        let known: Vec<&str> = table.iter().map(|field| field.name).collect();
        errors.push(CredentialFieldError {
            field: name.chars().take(NAME_SHOWN_CHARS_MAX).collect(),
            message: format!("is not supported; {provider} requires {}", known.join(", ")),
        });
    }
    let mut values = Vec::new();
    for field in table {
        let wrong = |message: &str| CredentialFieldError { field: field.name.to_owned(), message: message.to_owned() };
        match object.get(field.name) {
            None | Some(Value::Null) if field.required => errors.push(wrong("is required")),
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => errors.push(wrong("must not be empty")),
            Some(Value::String(text)) if text.len() > VALUE_BYTES_MAX => errors.push(wrong("is too long")),
            // Other characters are invalid in a header; a trailing line end is a copy-and-paste error.
            Some(Value::String(text)) if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                errors.push(wrong("must consist of letters, digits and punctuation, without spaces or line ends"));
            }
            Some(Value::String(text)) => values.push((*field, SecretText::new(text))),
            Some(_) => errors.push(wrong("must be a string")),
        }
    }
    values
}

/// Converts the values to typed credentials.
struct CredentialReader<'a> {
    values: &'a [(CredentialField, SecretText)],
}

impl CredentialReader<'_> {
    fn find(&self, name: &str) -> Option<&SecretText> {
        self.values.iter().find(|(field, _)| field.name == name).map(|(_, value)| value)
    }

    fn require(&self, name: &str) -> Result<SecretText, CredentialFieldError> {
        self.find(name).cloned().ok_or_else(|| field_error(name, "is required"))
    }

    fn login(&self, provider: Provider) -> Result<ProviderLogin, CredentialFieldError> {
        Ok(match (provider, provider.credential_fields()) {
            (Provider::Route53, _) => ProviderLogin::Aws(self.aws()?),
            (Provider::Rfc2136, _) => ProviderLogin::Tsig(self.tsig()?),
            (_, [first, second]) => ProviderLogin::Pair(self.require(first.name)?, self.require(second.name)?),
            (_, fields) => ProviderLogin::Token(self.require(fields.first().map_or("api_token", |field| field.name))?),
        })
    }

    fn aws(&self) -> Result<AwsKeys, CredentialFieldError> {
        Ok(AwsKeys {
            id: self.require("access_key_id")?,
            secret: self.require("secret_access_key")?,
            session: self.find("session_token").cloned(),
            region: self.word("region", |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')?,
            zone_id: self.word("hosted_zone_id", |byte| byte.is_ascii_alphanumeric())?,
        })
    }

    /// A word that becomes part of a URL, so its characters are restricted.
    fn word(&self, name: &'static str, allowed: fn(u8) -> bool) -> Result<Option<String>, CredentialFieldError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let text = value.expose().trim_start_matches("/hostedzone/");
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            return Err(field_error(name, "must be a valid AWS identifier"));
        }
        Ok(Some(text.to_owned()))
    }

    fn tsig(&self) -> Result<TsigKey, CredentialFieldError> {
        let server = self.require("server")?;
        let server = server.expose().parse().map_err(|error| field_error("server", &format!("{error}")))?;
        let name = self.require("key_name")?.expose().parse();
        let name = name.map_err(|_| field_error("key_name", "must be the key's name in the server's configuration"))?;
        let algorithm = match self.find("algorithm").map(|value| value.expose().to_ascii_lowercase()).as_deref() {
            None | Some("hmac-sha256") => TsigAlgorithm::Sha256,
            Some("hmac-sha384") => TsigAlgorithm::Sha384,
            Some("hmac-sha512") => TsigAlgorithm::Sha512,
            Some(_) => {
                return Err(field_error("algorithm", "must be hmac-sha256, hmac-sha384 or hmac-sha512"));
            }
        };
        let key = STANDARD.decode(self.require("secret")?.expose());
        let key = key.ok().filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| field_error("secret", "must be base64, as in the server's configuration"))?;
        Ok(TsigKey { server, name, algorithm, key })
    }
}

fn field_error(field: &str, message: &str) -> CredentialFieldError {
    CredentialFieldError { field: field.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::zone::provider_client;

    fn errors(provider: Provider, value: &Value) -> Vec<String> {
        let errors = ProviderCredentials::parse(provider, value).unwrap_err();
        errors.into_iter().map(|error| format!("{} {}", error.field, error.message)).collect()
    }

    #[test]
    fn every_provider_accepts_its_documented_credentials() {
        for &provider in Provider::ALL {
            let object: Map<String, Value> = provider
                .credential_fields()
                .iter()
                .map(|field| {
                    let value = match field.name {
                        "server" => "ns.example:5353",
                        "algorithm" => "hmac-sha512",
                        "secret" => "c2VjcmV0IHNlY3JldCBzZWNyZXQ=",
                        "region" => "eu-central-1",
                        "hosted_zone_id" => "/hostedzone/Z0ABC",
                        _ => "0123456789-secret",
                    };
                    (field.name.to_owned(), Value::from(value))
                })
                .collect();
            let read = ProviderCredentials::parse(provider, &Value::Object(object.clone())).unwrap();
            assert_eq!(read.provider(), provider);
            let has_own_client = matches!(read.login, ProviderLogin::Aws(_) | ProviderLogin::Tsig(_));
            assert!(has_own_client || provider_client(&read).is_ok(), "{provider} has no client");
            let debug = format!("{read:?}");
            let again = serde_json::from_str(read.secret_json().expose()).unwrap();
            assert_eq!(Value::Object(object), again);
            assert!(ProviderCredentials::parse(provider, &again).unwrap() == read);
            for text in ["0123456789-secret", "c2VjcmV0IHNlY3JldCBzZWNyZXQ="] {
                assert!(!debug.contains(text));
            }
            let secret = provider.credential_fields().iter().find(|field| field.secret).unwrap().name;
            let value = again[secret].as_str().unwrap();
            assert_eq!(read.redact(&format!("denied: {value}!")), "denied: ***!");
        }
    }

    #[test]
    fn credential_errors_name_the_field() {
        assert_eq!(errors(Provider::Cloudflare, &json!("token")), [" must be an object"]);
        assert_eq!(
            errors(Provider::Cloudflare, &json!({"token": "x"})),
            ["token is not supported; Cloudflare requires api_token", "api_token is required"]
        );
        assert_eq!(errors(Provider::Hetzner, &json!({"api_token": 5})), ["api_token must be a string"]);
        assert_eq!(errors(Provider::Hetzner, &json!({"api_token": ""})), ["api_token must not be empty"]);
        assert_eq!(
            errors(Provider::Hetzner, &json!({"api_token": "a\r\nHost: b"})),
            ["api_token must consist of letters, digits and punctuation, without spaces or line ends"]
        );
        assert_eq!(errors(Provider::Hetzner, &json!({"api_token": "a".repeat(5_000)})), ["api_token is too long"]);
        let route53 = json!({"access_key_id": "a", "secret_access_key": "b", "hosted_zone_id": "../../x"});
        assert_eq!(errors(Provider::Route53, &route53), ["hosted_zone_id must be a valid AWS identifier"]);
        let rfc2136 = |name: &str, value: &str| {
            let mut object = json!({"server": "ns.example", "key_name": "k", "secret": "c2VjcmV0"});
            object[name] = value.into();
            errors(Provider::Rfc2136, &object)
        };
        assert_eq!(rfc2136("algorithm", "hmac-md5"), ["algorithm must be hmac-sha256, hmac-sha384 or hmac-sha512"]);
        assert_eq!(
            rfc2136("secret", "not base64!"),
            ["secret must consist of letters, digits and punctuation, without spaces or line ends"]
        );
        assert_eq!(rfc2136("secret", "***"), ["secret must be base64, as in the server's configuration"]);
        assert!(rfc2136("server", "ns.example:22")[0].starts_with("server "));
    }
}
