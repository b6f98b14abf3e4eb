//! Webhook endpoints of an account, their subscriptions, and the signature of deliveries
//! (`webhook-signature`, a webhook signature by HMAC-SHA256; docs/WEBHOOKS.md).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use message::address_pattern::AddressPattern;
use message::{hexadecimal, words};
use serde::{Deserialize, Serialize};

use crate::domain::SealedSecret;
use crate::event::EventKind;
use crate::id::{AccountId, DomainId, WebhookId};
use crate::signed_token::hmac_sha256;

/// Maximum number of endpoints of an account.
pub const ENDPOINTS_MAX: usize = 50;
pub const SECRET_PREFIX: &str = "whsec_";
/// Maximum length of a description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 500;
/// Maximum number of domains in an endpoint's filter.
pub const DOMAINS_MAX: usize = 50;
/// Maximum number of address patterns in an endpoint's filter.
pub const ADDRESSES_MAX: usize = 100;
/// An endpoint is disabled after failing for this long without a success.
pub const FAILING_MAX: std::time::Duration = std::time::Duration::from_secs(5 * 24 * 3600);

pub fn is_event(name: &str) -> bool {
    EventKind::from_name(name).is_some()
}

words! {
    /// Retry schedule of an endpoint.
    #[derive(Default)]
    RetryPolicy {
        /// Five attempts within five minutes, or as configured by the operator.
        #[default]
        Default = "default",
        /// Eight attempts within 28 hours.
        Extended = "extended",
    }
}

words! {
    /// Reason why an endpoint is disabled.
    DisabledReason {
        /// The endpoint responded 410.
        Gone = "gone",
        /// Deliveries failed for five days.
        Failing = "failing",
        /// Disabled by its owner.
        Customer = "customer",
    }
}

/// Maximum number of former secrets that still sign. If the response of a rotation is lost and the rotation is
/// repeated, the receivers' current secret must remain valid.
pub const FORMER_SECRETS_MAX: usize = 3;

/// A replaced secret that signs until its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FormerSecret {
    pub sealed: SealedSecret,
    /// Time until which it signs.
    pub until: Timestamp,
}

/// A webhook endpoint.
#[message::row::omit_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: WebhookId,
    pub account: AccountId,
    pub url: String,
    /// Subscribed event types; empty means all types that need no explicit subscription.
    pub events: Vec<String>,
    pub enabled: bool,
    pub description: Option<String>,
    /// Domains whose events are delivered; empty means all events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<(DomainId, DomainName)>,
    /// Address patterns whose received mail is delivered; empty means all received mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<AddressPattern>,
    /// Retry schedule.
    #[serde(default, skip_serializing_if = "message::row::is_default")]
    pub retry: RetryPolicy,
    /// Current signing secret, encrypted.
    pub secret: SealedSecret,
    /// Former secrets that still sign, the latest first; at most [`FORMER_SECRETS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_secrets: Vec<FormerSecret>,
    /// Time since which all deliveries failed; `None` while deliveries succeed.
    pub failing_since: Option<Timestamp>,
    pub disabled_reason: Option<DisabledReason>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Copy)]
pub enum EventDomain<'a> {
    Id(DomainId),
    Name(&'a str),
}

impl Webhook {
    /// Returns whether the endpoint subscribes to an event type.
    pub fn subscribes_to(&self, kind: EventKind) -> bool {
        if self.events.is_empty() {
            return !kind.requires_explicit_subscription();
        }
        self.events.iter().any(|name| name == kind.name())
    }

    /// Returns whether the domain filter accepts an event about this domain, or about none.
    pub fn accepts_domain(&self, about: Option<EventDomain<'_>>) -> bool {
        self.domains.is_empty()
            || self.domains.iter().any(|(id, name)| match about {
                Some(EventDomain::Id(wanted)) => *id == wanted,
                Some(EventDomain::Name(wanted)) => name.as_str() == wanted,
                None => false,
            })
    }

    /// Returns whether the address filter accepts mail received for this address.
    pub fn accepts_received_for(&self, received_for: &Address) -> bool {
        self.addresses.is_empty() || self.addresses.iter().any(|pattern| pattern.matches(received_for))
    }

    /// Disables the endpoint with a reason, or enables it. Enabling resets `failing_since`.
    pub fn set_disabled(&mut self, off: Option<DisabledReason>) {
        self.enabled = off.is_none();
        self.disabled_reason = off;
        if self.enabled {
            self.failing_since = None;
        }
    }
}

/// Formats a secret; the format is that of Standard Webhooks.
pub fn format_secret(bytes: &[u8; 32]) -> String {
    format!("{SECRET_PREFIX}{}", STANDARD.encode(bytes))
}

/// Signature header fields of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSignature {
    /// `Service-Signature`: HMAC-SHA256 of `t.body`, keyed with the complete text of the secret, in hexadecimal.
    pub service_signature: String,
    /// `webhook-timestamp`.
    pub timestamp: String,
    /// `webhook-signature` of Standard Webhooks: HMAC-SHA256 of `id.t.body`, keyed with the secret's bytes, in base 64.
    pub webhook_signature: String,
}

/// Signs a body with each of the secrets; during a rotation there are several.
pub fn sign<'a>(secrets: impl IntoIterator<Item = &'a str>, id: &str, at: Timestamp, body: &[u8]) -> WebhookSignature {
    let timestamp = at.as_second().to_string();
    let mut service = format!("t={timestamp}");
    let mut standard = Vec::new();
    for secret in secrets {
        let tag = hmac_sha256(secret.as_bytes(), &[timestamp.as_bytes(), b".", body]);
        service.push_str(",v1=");
        service.push_str(&hexadecimal::encode(tag));
        let encoded = secret.strip_prefix(SECRET_PREFIX).unwrap_or(secret);
        let key = STANDARD.decode(encoded).unwrap_or_else(|_| encoded.as_bytes().to_vec());
        let tag = hmac_sha256(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        standard.push(format!("v1,{}", STANDARD.encode(tag)));
    }
    WebhookSignature { service_signature: service, timestamp, webhook_signature: standard.join(" ") }
}

/// Body of a delivery: exactly these three fields in this order.
#[derive(Debug, Serialize)]
pub struct WebhookBody<'a> {
    /// The event type.
    pub r#type: &'a str,
    /// Time of the event, in the format of [`crate::timestamp::to_rfc3339`].
    pub created_at: String,
    /// The event's data.
    pub data: &'a serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fixed test vector.
    #[test]
    fn the_signature_matches_the_test_vector() {
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
    fn endpoints_accept_their_events_and_domains() {
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
