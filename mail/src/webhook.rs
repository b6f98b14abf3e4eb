//! Webhook endpoints: where an account wants to be told what happens, and how a delivery is signed
//! (email-api.md "Webhook endpoint", "Signature verification"; completions-email.md 0, 2.10, 2.11).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::address::{Address, DomainName};
use crate::address_pattern::AddressPattern;
use crate::domain::SealedSecret;
use crate::event::EventKind;
use crate::id::{AccountId, DomainId, WebhookId};

/// Endpoints of one account.
pub const ENDPOINTS_MAX: usize = 50;
/// What a secret begins with.
pub const SECRET_PREFIX: &str = "whsec_";
/// The longest description.
pub const DESCRIPTION_BYTES_MAX: usize = 500;
/// Domains that an endpoint can be narrowed to.
pub const DOMAINS_MAX: usize = 50;
/// Patterns of addresses that it can be narrowed to.
pub const ADDRESSES_MAX: usize = 100;
/// For how long an endpoint may do nothing but fail before it is disabled.
pub const FAILING_MAX: std::time::Duration = std::time::Duration::from_secs(5 * 24 * 3600);

/// Whether an event of this name can be asked for.
#[must_use]
pub fn is_event(name: &str) -> bool {
    EventKind::from_name(name).is_some()
}

/// Which ladder of retries an endpoint has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryPolicy {
    /// Five attempts within five minutes, or as the operator configured.
    #[default]
    Default,
    /// Eight attempts within 28 hours.
    Extended,
}

impl RetryPolicy {
    /// The words for them.
    pub const WORDS: &[&str] = &["default", "extended"];

    /// By its word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "default" => Some(Self::Default),
            "extended" => Some(Self::Extended),
            _ => None,
        }
    }

    /// Whether it is the usual one.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::Default
    }
}

/// Why an endpoint gets nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DisabledReason {
    /// It answered 410.
    Gone,
    /// It failed for five days.
    Failing,
    /// Whoever owns it switched it off.
    Customer,
}

impl DisabledReason {
    /// The words for them.
    pub const WORDS: &[&str] = &["gone", "failing", "customer"];

    /// Its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Customer => "customer",
        }
    }
}

/// Secrets that sign beside the one that holds: a rotation that is asked for again, because its answer was lost,
/// must not take the secret away that receivers have.
pub const FORMER_SECRETS_MAX: usize = 3;

/// A secret that was replaced, and still signs for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerSecret {
    /// The secret.
    pub sealed: SealedSecret,
    /// Until when it signs.
    pub until: Timestamp,
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Webhook {
    /// Its id.
    pub id: WebhookId,
    /// Whose it is.
    pub account: AccountId,
    /// Where it is.
    pub url: String,
    /// The events that it asks for; none means all that need not be named.
    pub events: Vec<String>,
    /// Whether it gets any.
    pub enabled: bool,
    /// What its owner says about it.
    pub description: Option<String>,
    /// The only domains whose events it gets; none means all events.
    pub domains: Vec<(DomainId, DomainName)>,
    /// The only addresses whose received mail it gets; none means all received mail.
    pub addresses: Vec<AddressPattern>,
    /// How it is tried again.
    pub retry: RetryPolicy,
    /// What signs, sealed.
    pub secret: SealedSecret,
    /// What signed before and still does, the latest first; [`FORMER_SECRETS_MAX`] at most.
    pub former_secrets: Vec<FormerSecret>,
    /// Since when nothing arrived; none while things arrive.
    pub failing_since: Option<Timestamp>,
    /// Why it is not enabled.
    pub disabled_reason: Option<DisabledReason>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed.
    pub updated_at: Timestamp,
}

/// The domain that an event is about.
#[derive(Debug, Clone, Copy)]
pub enum EventDomain<'a> {
    /// By id.
    Id(DomainId),
    /// By name.
    Name(&'a str),
}

impl Webhook {
    /// Whether it asks for events of this name.
    #[must_use]
    pub fn subscribes_to(&self, kind: EventKind) -> bool {
        if self.events.is_empty() {
            return !kind.requires_explicit_subscription();
        }
        self.events.iter().any(|name| name == kind.name())
    }

    /// Whether an event about this domain, or about none, is for it.
    #[must_use]
    pub fn accepts_domain(&self, about: Option<EventDomain<'_>>) -> bool {
        self.domains.is_empty()
            || self.domains.iter().any(|(id, name)| match about {
                Some(EventDomain::Id(one)) => *id == one,
                Some(EventDomain::Name(one)) => name.as_str() == one,
                None => false,
            })
    }

    /// Whether mail that came in for this address is for it.
    #[must_use]
    pub fn accepts_received_for(&self, received_for: &Address) -> bool {
        self.addresses.is_empty() || self.addresses.iter().any(|pattern| pattern.matches(received_for))
    }

    /// It is switched off, or on again. Since when nothing has arrived stays known until it is on again.
    pub fn set_disabled(&mut self, off: Option<DisabledReason>) {
        self.enabled = off.is_none();
        self.disabled_reason = off;
        if self.enabled {
            self.failing_since = None;
        }
    }
}

/// The text of a secret made of these bytes: it is a key of Standard Webhooks libraries too.
#[must_use]
pub fn format_secret(bytes: &[u8; 32]) -> String {
    format!("{SECRET_PREFIX}{}", STANDARD.encode(bytes))
}

/// The header fields that sign a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSignature {
    /// `Service-Signature`: HMAC-SHA256 by the whole text of the secret over `t.body`, in hexadecimal.
    pub service_signature: String,
    /// `webhook-timestamp`.
    pub timestamp: String,
    /// `webhook-signature` of Standard Webhooks: HMAC-SHA256 by the secret's bytes over `id.t.body`, in base 64.
    pub webhook_signature: String,
}

/// Signs a body for now, with each of these secrets (two while one replaces another).
#[must_use]
pub fn sign<'a>(secrets: impl IntoIterator<Item = &'a str>, id: &str, at: Timestamp, body: &[u8]) -> WebhookSignature {
    let timestamp = at.as_second().to_string();
    let mut service = format!("t={timestamp}");
    let mut standard = Vec::new();
    for secret in secrets {
        let tag = hmac(secret.as_bytes(), &[timestamp.as_bytes(), b".", body]);
        service.push_str(",v1=");
        for byte in tag {
            for digit in [byte >> 4, byte & 15] {
                service.extend(char::from_digit(u32::from(digit), 16));
            }
        }
        let encoded = secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret);
        let key = STANDARD.decode(encoded).unwrap_or_else(|_| encoded.as_bytes().to_vec());
        let tag = hmac(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        standard.push(format!("v1,{}", STANDARD.encode(tag)));
    }
    WebhookSignature { service_signature: service, timestamp, webhook_signature: standard.join(" ") }
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    // An HMAC takes a key of any length: this cannot fail.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The body of a delivery: exactly these three, in this order.
#[derive(Debug, Serialize)]
pub struct WebhookBody<'a> {
    /// The event's name.
    pub r#type: &'a str,
    /// When it happened, as [`crate::moment::write`] writes it.
    pub created_at: String,
    /// What happened.
    pub data: &'a serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// completions-email.md 2.13.
    #[test]
    fn the_test_vector() {
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let body = br#"{"type":"email.delivered","created_at":"2026-01-01T10:00:01.000Z","data":{"event_id":"evt_01TEST","email_id":"msg_01TEST","status":"delivered"}}"#;
        let at = Timestamp::from_second(1_767_261_601).unwrap();
        let signed = sign([secret], "evt_01TEST", at, body);
        assert_eq!(
            signed.service_signature,
            "t=1767261601,v1=73d1d171b7792518bf34eb652caafd4d13e94b75b22b20e832da53925b9329e7"
        );
        assert_eq!(signed.webhook_signature, "v1,leGq6P5XZxszBtppSdgPTG85IB61BP80s0YeiHeC2vU=");
        assert_eq!(signed.timestamp, "1767261601");
        let both = sign([secret, "whsec_AAAA"], "evt_01TEST", at, body);
        assert_eq!(both.service_signature.matches(",v1=").count(), 2);
        assert_eq!(both.webhook_signature.split(' ').count(), 2);
        assert!(both.service_signature.starts_with(&signed.service_signature));
        let bytes: [u8; 32] = std::array::from_fn(|n| u8::try_from(n).unwrap());
        assert_eq!(format_secret(&bytes), secret);
    }

    #[test]
    fn what_an_endpoint_asks_for() {
        let (now, name) = (Timestamp::UNIX_EPOCH, "example.com");
        let mut webhook = Webhook {
            id: WebhookId::new(now, 1),
            account: AccountId::new(now, 1),
            url: "https://example.com/".to_owned(),
            events: Vec::new(),
            enabled: true,
            description: None,
            domains: Vec::new(),
            addresses: Vec::new(),
            retry: RetryPolicy::Default,
            secret: SealedSecret(String::new()),
            former_secrets: Vec::new(),
            failing_since: None,
            disabled_reason: None,
            created_at: now,
            updated_at: now,
        };
        assert!(webhook.subscribes_to(EventKind::Received) && !webhook.subscribes_to(EventKind::DomainVerified));
        webhook.events = vec!["domain.verified".to_owned()];
        assert!(!webhook.subscribes_to(EventKind::Received) && webhook.subscribes_to(EventKind::DomainVerified));
        assert!(webhook.accepts_domain(None));
        webhook.domains = vec![(DomainId::new(now, 7), name.parse().unwrap())];
        assert!(!webhook.accepts_domain(None) && webhook.accepts_domain(Some(EventDomain::Name(name))));
        assert!(webhook.accepts_domain(Some(EventDomain::Id(DomainId::new(now, 7)))));
        assert!(!webhook.accepts_domain(Some(EventDomain::Name("example.net"))));
        let at = |address: &str| address.parse().unwrap();
        assert!(webhook.accepts_received_for(&at("anybody@example.com")));
        webhook.addresses = vec!["support+*@example.com".parse().unwrap(), "hello@example.com".parse().unwrap()];
        assert!(
            webhook.accepts_received_for(&at("support+1@example.com"))
                && webhook.accepts_received_for(&at("Hello@example.com"))
        );
        assert!(
            !webhook.accepts_received_for(&at("support@example.com"))
                && !webhook.accepts_received_for(&at("hello@example.net"))
        );
        assert!(is_event("payout.paid") && is_event("email.sent") && !is_event("email.eaten"));
    }
}
