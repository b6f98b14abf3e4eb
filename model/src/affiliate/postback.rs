//! Postbacks: webhooks to a partner about its own referrals and commissions, with the webhook envelope
//! (docs/AFFILIATE.md).

use std::time::Duration;

use serde_json::{Map, Value};

use crate::event::{Event, EventKind};
use crate::id::PartnerId;
use crate::timestamp;
use crate::webhook::WebhookBody;
use crate::webhook_payload::event_data;

/// Delay before each of the four attempts.
pub const RETRY_SCHEDULE: [Duration; 4] =
    [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(30), Duration::from_secs(120)];
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The field name of a person's email address, at any level of the payload.
const EMAIL: &str = "email";

/// The partner whose postback receives the event; `None` if the event's kind is not sent to partners.
pub fn partner_for_event(event: &Event) -> Option<PartnerId> {
    let is_for_partners = matches!(
        event.kind,
        EventKind::ReferralCreated
            | EventKind::ReferralConverted
            | EventKind::CommissionCreated
            | EventKind::CommissionEarned
            | EventKind::CommissionReversed
            | EventKind::CommissionPaid
    );
    let partner = event.detail.get("affiliate_id").filter(|_| is_for_partners)?;
    partner.as_str()?.parse().ok()
}

/// Renders the JSON body. Email addresses are masked unless the program shares them.
pub fn postback_body(event: &Event, shares_email: bool) -> Option<String> {
    let mut data = event_data(event, None)?;
    if !shares_email {
        mask_addresses(&mut data);
    }
    let envelope =
        WebhookBody { r#type: event.kind.name(), created_at: timestamp::to_rfc3339(event.created_at), data: &data };
    serde_json::to_string(&envelope).ok()
}

/// Masks the email addresses in a payload.
fn mask_addresses(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::String(text) if name == EMAIL => *text = masked_address(text),
            Value::Object(fields) => mask_addresses(fields),
            _ => {}
        }
    }
}

/// Masks an address except for its first character and domain: `g***@example.net`.
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
        assert_eq!(partner_for_event(&event), None, "partners get no events about themselves");
        assert_eq!((masked_address("x").as_str(), masked_address("@a.b").as_str()), ("***", "***@a.b"));
    }
}
