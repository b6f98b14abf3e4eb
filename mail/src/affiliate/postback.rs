//! Postbacks: what a partner is told of its own referrals and commissions, in the envelope of webhooks
//! (affiliate-api.md, "Per-partner postbacks").

use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::{Event, EventKind};
use crate::id::PartnerId;
use crate::moment;
use crate::payload::event_data;
use crate::webhook::WebhookBody;

/// The waits before each attempt: one, and three more.
pub const RETRY_SCHEDULE: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];
/// How long one attempt may take.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The field of whatever is told that holds a person's address.
const EMAIL: &str = "email";

/// The partner whom an event is told to, if it is one that partners are told of.
#[must_use]
pub fn partner_for_event(event: &Event) -> Option<PartnerId> {
    let is_theirs = matches!(
        event.kind,
        EventKind::ReferralCreated
            | EventKind::ReferralConverted
            | EventKind::CommissionCreated
            | EventKind::CommissionEarned
            | EventKind::CommissionReversed
            | EventKind::CommissionPaid
    );
    let partner = event.detail.get("affiliate_id").filter(|_| is_theirs)?;
    partner.as_str()?.parse().ok()
}

/// The body of a postback: addresses are masked unless the program shares them.
#[must_use]
pub fn postback_body(event: &Event, shares_email: bool) -> Option<String> {
    let mut data = event_data(event, None)?;
    if !shares_email {
        mask_addresses(&mut data);
    }
    let envelope =
        WebhookBody { r#type: event.kind.name(), created_at: moment::to_rfc3339(event.created_at), data: &data };
    serde_json::to_string(&envelope).ok()
}

/// Masks the addresses in what is told.
fn mask_addresses(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::String(text) if name == EMAIL => *text = masked_address(text),
            Value::Object(fields) => mask_addresses(fields),
            _ => {}
        }
    }
}

/// An address of which one sees where it is and how it begins: `g***@example.net`.
#[must_use]
pub fn masked_address(email: &str) -> String {
    let Some((local, domain)) = email.rsplit_once('@') else { return "***".to_owned() };
    let first: String = local.chars().take(1).collect();
    format!("{first}***@{domain}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{AccountId, EventId, ReferralId};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn addresses_are_masked_unless_they_are_shared() {
        let (at, partner) = (Timestamp::UNIX_EPOCH, PartnerId::new(Timestamp::UNIX_EPOCH, 1));
        let mut event = Event {
            id: EventId::new(at, 1),
            account: AccountId::new(at, 1),
            subject: ReferralId::new(at, 1).into(),
            kind: EventKind::ReferralCreated,
            recipient: None,
            created_at: at,
            detail: json!({"affiliate_id": partner, "referral": {"email": "grace@example.net", "id": "ref_1"}}),
        };
        assert_eq!(partner_for_event(&event), Some(partner));
        let body =
            |event: &Event, shares| -> Value { serde_json::from_str(&postback_body(event, shares).unwrap()).unwrap() };
        assert_eq!(body(&event, false)["data"]["referral"]["email"], json!("g***@example.net"));
        assert_eq!(body(&event, false)["data"]["referral"]["id"], json!("ref_1"));
        assert_eq!(body(&event, true)["data"]["referral"]["email"], json!("grace@example.net"));
        assert_eq!(body(&event, true)["type"], json!("referral.created"));
        event.kind = EventKind::AffiliateUpdated;
        assert_eq!(partner_for_event(&event), None, "of itself it needs not be told");
        assert_eq!((masked_address("x").as_str(), masked_address("@a.b").as_str()), ("***", "***@a.b"));
    }
}
