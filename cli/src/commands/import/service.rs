//! `Service`: the export formats of other services, and their words for reasons.
//!
//! - Resend: `GET /suppressions` (`email`, `origin`); contacts (`email`, `unsubscribed`)
//! - Postmark: `GET …/suppressions/dump` (`EmailAddress`, `SuppressionReason`, `Origin`)
//! - Amazon SES: `ListSuppressedDestinations` and its export job (`EmailAddress`, `Reason`)
//! - Mailgun: bounces (`address`, `code`, `error`), unsubscribes (`address`, `tags`), complaints (`address`, `count`)
//!
//! Each as CSV or as the JSON of the API.

use serde_json::{Map, Value};

/// Why an address is suppressed, in the API's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SuppressionReason {
    HardBounce,
    Complaint,
    Unsubscribe,
    Manual,
    /// No reason is known.
    Import,
}

impl SuppressionReason {
    pub(super) const NAMES: [&'static str; 5] = ["hard_bounce", "complaint", "unsubscribe", "manual", "import"];
    const ALL: [Self; 5] = [Self::HardBounce, Self::Complaint, Self::Unsubscribe, Self::Manual, Self::Import];

    pub(super) fn name(self) -> &'static str {
        let named = Self::ALL.iter().zip(Self::NAMES).find(|(one, _)| **one == self);
        named.map_or("import", |(_, name)| name)
    }

    pub(super) fn parse(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|one| *one == name).and_then(|at| Self::ALL.get(at).copied())
    }

    /// The reason of a service's word. `origin` is Postmark's: who asked for the suppression.
    fn of_word(word: &str, origin: &str) -> Option<Self> {
        Some(match normal_name(word).as_str() {
            "bounce" | "hardbounce" | "permanent" => Self::HardBounce,
            "complaint" | "spamcomplaint" | "spam" => Self::Complaint,
            "unsubscribe" | "unsubscribed" => Self::Unsubscribe,
            "manualsuppression" if normal_name(origin) == "recipient" => Self::Unsubscribe,
            "manual" | "manualsuppression" => Self::Manual,
            _ => return None,
        })
    }
}

/// A service that exports are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Service {
    Resend,
    Postmark,
    Ses,
    Mailgun,
}

impl Service {
    pub(super) const NAMES: [&'static str; 4] = ["resend", "postmark", "ses", "mailgun"];
    /// Normalised names of columns with addresses.
    pub(super) const EMAIL_COLUMNS: [&'static str; 4] = ["email", "emailaddress", "address", "recipient"];

    pub(super) fn parse(name: &str) -> Self {
        match name {
            "resend" => Self::Resend,
            "postmark" => Self::Postmark,
            "ses" => Self::Ses,
            _ => Self::Mailgun,
        }
    }

    /// Names of the lists in the API's answers.
    pub(super) const fn lists(self) -> &'static [&'static str] {
        match self {
            Self::Resend => &["data"],
            Self::Postmark => &["Suppressions", "Templates"],
            Self::Ses => &["SuppressedDestinationSummaries"],
            Self::Mailgun => &["items"],
        }
    }

    /// Whether another page follows an answer of the service's API with a list. `None` if it does not say.
    pub(super) fn has_next_page(self, answer: &Value) -> Option<bool> {
        match self {
            Self::Resend => answer["has_more"].as_bool(),
            Self::Ses => Some(answer["NextToken"].as_str().is_some_and(|token| !token.is_empty())),
            // A dump has all suppressions, and Mailgun names a next page even at the end.
            Self::Postmark | Self::Mailgun => None,
        }
    }

    /// The address and the reason of a row; `None` if the row is no suppression.
    ///
    /// # Errors
    /// The row has no address, or a reason that is not known.
    pub(super) fn suppression(
        self,
        fields: &Map<String, Value>,
        default: Option<SuppressionReason>,
    ) -> Result<Option<(String, SuppressionReason)>, String> {
        let text = |name: &str| match fields.get(name) {
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Bool(value)) => value.to_string(),
            Some(Value::Number(value)) => value.to_string(),
            _ => String::new(),
        };
        let email = Self::EMAIL_COLUMNS.iter().map(|column| text(column)).find(|email| !email.is_empty());
        let email = email.ok_or("the row has no address")?;
        if !is_address(&email) {
            return Err(format!("`{}` is not an address", email.chars().take(80).collect::<String>()));
        }
        let words = ["suppressionreason", "reason", "origin", "bouncetype"];
        let word = words.iter().map(|name| text(name)).find(|word| !word.is_empty()).unwrap_or_default();
        let reason = match self {
            Self::Resend if fields.contains_key("unsubscribed") => match text("unsubscribed").to_lowercase().as_str() {
                "true" | "yes" | "1" => Some(SuppressionReason::Unsubscribe),
                _ => return Ok(None),
            },
            Self::Mailgun if fields.contains_key("code") => Some(SuppressionReason::HardBounce),
            // Only the tag `*` means all mail. An opt-out of a tag must not stop receipts and passwords.
            Self::Mailgun if fields.contains_key("tags") || fields.contains_key("tag") => {
                match is_for_all_mail(fields.get("tags").or(fields.get("tag"))) {
                    true => Some(SuppressionReason::Unsubscribe),
                    false => return Ok(None),
                }
            }
            Self::Mailgun if fields.contains_key("count") => Some(SuppressionReason::Complaint),
            _ if word.is_empty() => None,
            _ => {
                let reason = SuppressionReason::of_word(&word, &text("origin"));
                Some(reason.or(default).ok_or_else(|| {
                    let word: String = word.chars().take(80).collect();
                    format!("`{word}` is not a known reason; set one for such rows with --reason")
                })?)
            }
        };
        Ok(Some((email, reason.or(default).unwrap_or(SuppressionReason::Import))))
    }
}

/// Returns whether tags of Mailgun have `*`, or there are none.
fn is_for_all_mail(tags: Option<&Value>) -> bool {
    let is_all =
        |text: &str| text.trim().is_empty() || text.split([',', ' ', '[', ']', '"', '\'']).any(|tag| tag == "*");
    match tags {
        Some(Value::Array(tags)) => tags.is_empty() || tags.iter().any(|tag| tag == "*"),
        Some(Value::String(text)) => is_all(text),
        _ => true,
    }
}

/// Lower case without punctuation: `Email Address` and `email_address` are equal.
pub(super) fn normal_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Returns whether a text can be an address; the server decides.
fn is_address(text: &str) -> bool {
    let is_plain = !text.chars().any(|c| c.is_whitespace() || c.is_control() || "<>,;".contains(c));
    is_plain && text.rsplit_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn reasons_of_services_are_mapped() {
        use SuppressionReason as R;
        for (service, row, reason) in [
            (Service::Resend, json!({"email": "a@b.example", "origin": "bounce"}), R::HardBounce),
            (Service::Resend, json!({"email": "a@b.example", "origin": "manual"}), R::Manual),
            (Service::Resend, json!({"email": "a@b.example", "unsubscribed": "true"}), R::Unsubscribe),
            (
                Service::Postmark,
                json!({"emailaddress": "a@b.example", "suppressionreason": "SpamComplaint", "origin": "Recipient"}),
                R::Complaint,
            ),
            (
                Service::Postmark,
                json!({"emailaddress": "a@b.example", "suppressionreason": "ManualSuppression", "origin": "Recipient"}),
                R::Unsubscribe,
            ),
            (
                Service::Postmark,
                json!({"emailaddress": "a@b.example", "suppressionreason": "ManualSuppression", "origin": "Customer"}),
                R::Manual,
            ),
            (Service::Ses, json!({"emailaddress": "a@b.example", "reason": "COMPLAINT"}), R::Complaint),
            (Service::Mailgun, json!({"address": "a@b.example", "code": "550", "error": "x"}), R::HardBounce),
            (Service::Mailgun, json!({"address": "a@b.example", "tags": ["*"]}), R::Unsubscribe),
            (Service::Mailgun, json!({"address": "a@b.example", "count": 1}), R::Complaint),
            (Service::Mailgun, json!({"address": "a@b.example"}), R::Import),
        ] {
            let fields = row.as_object().unwrap();
            assert_eq!(service.suppression(fields, None), Ok(Some(("a@b.example".to_owned(), reason))), "{row}");
        }
        let subscribed = json!({"email": "a@b.example", "unsubscribed": "false"});
        assert_eq!(Service::Resend.suppression(subscribed.as_object().unwrap(), None), Ok(None));
        for tags in [json!(["news"]), json!("news, offers")] {
            let partly = json!({"address": "a@b.example", "tags": tags});
            assert_eq!(Service::Mailgun.suppression(partly.as_object().unwrap(), None), Ok(None));
        }
        let other = json!({"email": "a@b.example", "reason": "moon"});
        assert!(Service::Ses.suppression(other.as_object().unwrap(), None).is_err());
        assert!(Service::Ses.suppression(other.as_object().unwrap(), Some(R::Manual)).is_ok());
        assert!(Service::Ses.suppression(json!({"email": "nobody"}).as_object().unwrap(), None).is_err());
    }
}
