//! Credentials for a provider, read from JSON: everything wrong is told at once, field by field.
//!
//! ```text
//! {"api_token": "…"} ─► Credentials::read(provider) ─► Credentials { login } ─► the provider's client
//!                                                  └► secret_json ─► sealed, if the customer wants it kept
//! ```
//!
//! What a provider takes is a table ([`fields`]), so that the document, the messages and the reader agree.
//! Values are held as [`Secret`]s: a `Debug` of credentials shows which provider they are for and no more.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail::address::Name;
use serde_json::{Map, Value};

use super::Provider;
use super::secret::Secret;
use super::server::ServerAddress;

/// Bytes of one value.
const VALUE_BYTES_MAX: usize = 4_096;
/// Errors told of one object.
const ERRORS_MAX: usize = 20;
/// What is shown of a name that somebody made up.
const NAME_SHOWN_CHARS_MAX: usize = 64;

/// A field of a provider's credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it is secret; what is not may be shown.
    pub secret: bool,
}

/// What is wrong with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// Its name; empty when the whole is no object.
    pub field: String,
    /// What is wrong, as a sentence that follows the name.
    pub message: String,
}

/// Credentials that one provider takes.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    provider: Provider,
    given: Vec<(Field, Secret)>,
    pub(super) login: Login,
}

/// Credentials as they are used.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Login {
    /// One token, which names its owner too.
    Token(Secret),
    /// A key or a name, and what goes with it.
    Pair(Secret, Secret),
    /// AWS.
    Aws(AwsKeys),
    /// TSIG (RFC 8945).
    Tsig(TsigKey),
}

/// Keys for Route 53.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct AwsKeys {
    pub(super) id: Secret,
    pub(super) secret: Secret,
    pub(super) session: Option<Secret>,
    pub(super) region: Option<String>,
    pub(super) zone_id: Option<String>,
}

/// A key for dynamic updates and the server that knows it.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct TsigKey {
    pub(super) server: ServerAddress,
    pub(super) name: Name,
    pub(super) algorithm: TsigAlgorithm,
    pub(super) key: Vec<u8>,
}

/// The algorithms that RFC 8945 6 asks for and nobody has broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TsigAlgorithm {
    Sha256,
    Sha384,
    Sha512,
}

const fn secret(name: &'static str) -> Field {
    Field { name, required: true, secret: true }
}

const fn shown(name: &'static str, required: bool) -> Field {
    Field { name, required, secret: false }
}

/// The fields that a provider's credentials have.
#[must_use]
pub const fn fields(provider: Provider) -> &'static [Field] {
    match provider {
        Provider::Route53 => {
            const {
                &[
                    shown("access_key_id", true),
                    secret("secret_access_key"),
                    Field { name: "session_token", required: false, secret: true },
                    shown("region", false),
                    shown("hosted_zone_id", false),
                ]
            }
        }
        Provider::Rfc2136 => {
            const { &[shown("server", true), shown("key_name", true), shown("algorithm", false), secret("secret")] }
        }
        Provider::Dnsimple => const { &[shown("account_id", true), secret("api_token")] },
        Provider::Godaddy => const { &[secret("api_key"), secret("api_secret")] },
        Provider::NameCom => const { &[shown("username", true), secret("api_token")] },
        Provider::Porkbun => const { &[secret("api_key"), secret("secret_api_key")] },
        _ => const { &[secret("api_token")] },
    }
}

impl Credentials {
    /// Reads a provider's credentials from a JSON object.
    ///
    /// # Errors
    /// All that is wrong, at most twenty of it, never empty.
    pub fn read(provider: Provider, value: &Value) -> Result<Self, Vec<FieldError>> {
        let Value::Object(object) = value else {
            return Err(vec![FieldError { field: String::new(), message: "must be an object".to_owned() }]);
        };
        let mut errors = Vec::new();
        let given = sort(provider, object, &mut errors);
        if !errors.is_empty() {
            errors.truncate(ERRORS_MAX);
            return Err(errors);
        }
        let login = Reader { given: &given }.login(provider).map_err(|error| vec![error])?;
        Ok(Self { provider, given, login })
    }

    /// The provider that they are for.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.provider
    }

    /// The object that [`Credentials::read`] reads back: to be sealed, never to be shown or logged.
    #[must_use]
    pub fn secret_json(&self) -> Secret {
        let object: Map<String, Value> = self
            .given
            .iter()
            .map(|(field, value)| (field.name.to_owned(), Value::from(value.expose())))
            .collect();
        Secret::new(Value::Object(object).to_string())
    }

    /// A stranger's text, without the secrets that it may repeat.
    pub(super) fn cover(&self, text: &str) -> String {
        let secrets = self.given.iter().filter(|(field, _)| field.secret);
        secrets.fold(text.to_owned(), |text, (_, value)| value.cover(&text))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// The values by field; what is wrong with them goes to `errors`.
fn sort(
    provider: Provider,
    object: &Map<String, Value>,
    errors: &mut Vec<FieldError>,
) -> Vec<(Field, Secret)> {
    let table = fields(provider);
    for name in object.keys().filter(|name| !table.iter().any(|field| field.name == *name)).take(ERRORS_MAX) {
        let known: Vec<&str> = table.iter().map(|field| field.name).collect();
        errors.push(FieldError {
            field: name.chars().take(NAME_SHOWN_CHARS_MAX).collect(),
            message: format!("is not known; {provider} takes {}", known.join(", ")),
        });
    }
    let mut given = Vec::new();
    for field in table {
        let wrong = |message: &str| FieldError { field: field.name.to_owned(), message: message.to_owned() };
        match object.get(field.name) {
            None | Some(Value::Null) if field.required => errors.push(wrong("is required")),
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => errors.push(wrong("must not be empty")),
            Some(Value::String(text)) if text.len() > VALUE_BYTES_MAX => errors.push(wrong("is too long")),
            // Nothing else belongs into a header, and a line's end at the end is a paste gone wrong.
            Some(Value::String(text)) if !text.bytes().all(|byte| byte.is_ascii_graphic()) => {
                errors.push(wrong("must be letters, digits and signs without spaces or line ends"));
            }
            Some(Value::String(text)) => given.push((*field, Secret::new(text))),
            Some(_) => errors.push(wrong("must be a string")),
        }
    }
    given
}

/// Makes typed values of given ones.
struct Reader<'a> {
    given: &'a [(Field, Secret)],
}

impl Reader<'_> {
    fn find(&self, name: &str) -> Option<&Secret> {
        self.given.iter().find(|(field, _)| field.name == name).map(|(_, value)| value)
    }

    fn need(&self, name: &'static str) -> Result<Secret, FieldError> {
        self.find(name).cloned().ok_or_else(|| wrong(name, "is required"))
    }

    fn login(&self, provider: Provider) -> Result<Login, FieldError> {
        Ok(match provider {
            Provider::Route53 => Login::Aws(self.aws()?),
            Provider::Rfc2136 => Login::Tsig(self.tsig()?),
            Provider::Dnsimple => Login::Pair(self.need("api_token")?, self.need("account_id")?),
            Provider::Godaddy => Login::Pair(self.need("api_key")?, self.need("api_secret")?),
            Provider::NameCom => Login::Pair(self.need("username")?, self.need("api_token")?),
            Provider::Porkbun => Login::Pair(self.need("api_key")?, self.need("secret_api_key")?),
            _ => Login::Token(self.need("api_token")?),
        })
    }

    fn aws(&self) -> Result<AwsKeys, FieldError> {
        Ok(AwsKeys {
            id: self.need("access_key_id")?,
            secret: self.need("secret_access_key")?,
            session: self.find("session_token").cloned(),
            region: self
                .word("region", |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')?,
            zone_id: self.word("hosted_zone_id", |byte| byte.is_ascii_alphanumeric())?,
        })
    }

    /// A word that becomes part of an address at the provider, so that nothing but a word may be in it.
    fn word(&self, name: &'static str, allowed: fn(u8) -> bool) -> Result<Option<String>, FieldError> {
        let Some(value) = self.find(name) else { return Ok(None) };
        let text = value.expose().trim_start_matches("/hostedzone/");
        if text.is_empty() || text.len() > 64 || !text.bytes().all(allowed) {
            return Err(wrong(name, "must be a word as AWS writes it"));
        }
        Ok(Some(text.to_owned()))
    }

    fn tsig(&self) -> Result<TsigKey, FieldError> {
        let server = self.need("server")?;
        let server = server.expose().parse().map_err(|error| wrong("server", &format!("{error}")))?;
        let name = self.need("key_name")?.expose().parse();
        let name = name
            .map_err(|_| wrong("key_name", "must be the key's name as the server's configuration has it"))?;
        let algorithm =
            match self.find("algorithm").map(|value| value.expose().to_ascii_lowercase()).as_deref() {
                None | Some("hmac-sha256") => TsigAlgorithm::Sha256,
                Some("hmac-sha384") => TsigAlgorithm::Sha384,
                Some("hmac-sha512") => TsigAlgorithm::Sha512,
                Some(_) => return Err(wrong("algorithm", "must be hmac-sha256, hmac-sha384 or hmac-sha512")),
            };
        let key = STANDARD.decode(self.need("secret")?.expose());
        let key = key.ok().filter(|key| !key.is_empty());
        let key =
            key.ok_or_else(|| wrong("secret", "must be base64, as the server's configuration has it"))?;
        Ok(TsigKey { server, name, algorithm, key })
    }
}

fn wrong(field: &str, message: &str) -> FieldError {
    FieldError { field: field.to_owned(), message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(provider: Provider, value: &Value) -> Vec<String> {
        let errors = Credentials::read(provider, value).unwrap_err();
        errors.into_iter().map(|error| format!("{} {}", error.field, error.message)).collect()
    }

    #[test]
    fn every_provider_reads_what_it_says_it_takes() {
        for &provider in Provider::ALL {
            let object: Map<String, Value> = fields(provider)
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
            let read = Credentials::read(provider, &Value::Object(object.clone())).unwrap();
            assert_eq!(read.provider(), provider);
            let debug = format!("{read:?}");
            let again = serde_json::from_str(read.secret_json().expose()).unwrap();
            assert_eq!(Value::Object(object), again);
            assert!(Credentials::read(provider, &again).unwrap() == read);
            for text in ["0123456789-secret", "c2VjcmV0IHNlY3JldCBzZWNyZXQ="] {
                assert!(!debug.contains(text));
            }
            let secret = fields(provider).iter().find(|field| field.secret).unwrap().name;
            let value = again[secret].as_str().unwrap();
            assert_eq!(read.cover(&format!("denied: {value}!")), "denied: ***!");
        }
    }

    #[test]
    fn what_is_wrong_is_told_by_field() {
        assert_eq!(errors(Provider::Cloudflare, &json!("token")), [" must be an object"]);
        assert_eq!(
            errors(Provider::Cloudflare, &json!({"token": "x"})),
            ["token is not known; Cloudflare takes api_token", "api_token is required"]
        );
        assert_eq!(errors(Provider::Hetzner, &json!({"api_token": 5})), ["api_token must be a string"]);
        assert_eq!(errors(Provider::Hetzner, &json!({"api_token": ""})), ["api_token must not be empty"]);
        assert_eq!(
            errors(Provider::Hetzner, &json!({"api_token": "a\r\nHost: b"})),
            ["api_token must be letters, digits and signs without spaces or line ends"]
        );
        assert_eq!(
            errors(Provider::Hetzner, &json!({"api_token": "a".repeat(5_000)})),
            ["api_token is too long"]
        );
        let route53 = json!({"access_key_id": "a", "secret_access_key": "b", "hosted_zone_id": "../../x"});
        assert_eq!(errors(Provider::Route53, &route53), ["hosted_zone_id must be a word as AWS writes it"]);
        let rfc2136 = |name: &str, value: &str| {
            let mut object = json!({"server": "ns.example", "key_name": "k", "secret": "c2VjcmV0"});
            object[name] = value.into();
            errors(Provider::Rfc2136, &object)
        };
        assert_eq!(
            rfc2136("algorithm", "hmac-md5"),
            ["algorithm must be hmac-sha256, hmac-sha384 or hmac-sha512"]
        );
        assert_eq!(
            rfc2136("secret", "not base64!"),
            ["secret must be letters, digits and signs without spaces or line ends"]
        );
        assert_eq!(rfc2136("secret", "***"), ["secret must be base64, as the server's configuration has it"]);
        assert!(rfc2136("server", "ns.example:22")[0].starts_with("server "));
    }
}
