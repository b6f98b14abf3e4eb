//! The fields of a partner to create, and their validation: one set of length limits and formats for the API, list
//! imports and the portal's forms.

use message::address::Address;

use super::partner::{PartnerLinkToken, PartnerSource, PartnerStatus, PayoutDestination};
use super::program::PayoutMethod;
use super::web_origin;
use crate::id::PartnerId;

/// Longest name, company or campaign name, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest website URL in bytes.
pub const WEBSITE_BYTES_MAX: usize = 2_000;
/// Longest note in bytes.
pub const NOTES_BYTES_MAX: usize = 10_000;
/// Longest tag in bytes.
pub const TAG_BYTES_MAX: usize = 64;
/// Longest payout destination in bytes: the text of a bank transfer's account details.
pub const DESTINATION_BYTES_MAX: usize = 1_000;
/// Longest account id of the payment processor, in bytes.
const ACCOUNT_BYTES_MAX: usize = 255;

/// Fields of a partner to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartnerDraft {
    pub email: Address,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
    pub company: Option<String>,
    pub website: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country: Option<String>,
    /// Campaign by id or name; the default campaign if `None`.
    pub campaign: Option<String>,
    /// Token of the primary link; generated if `None`.
    pub token: Option<PartnerLinkToken>,
    /// Initial status: active, pending or invited.
    pub status: PartnerStatus,
    pub paypal_email: Option<Address>,
    pub tags: Vec<String>,
    pub notes: Option<String>,
    pub origin: PartnerOrigin,
    /// The recruiter.
    pub parent: Option<PartnerId>,
    /// True to mail the partner a welcome, invitation or receipt.
    pub send_invite: bool,
}

/// How a partner came to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartnerOrigin {
    pub source: PartnerSource,
    /// True if the partner itself accepted the program's terms.
    pub terms_accepted: bool,
}

impl PartnerOrigin {
    /// The partner was entered by another than itself.
    pub fn entered(source: PartnerSource) -> Self {
        Self { source, terms_accepted: false }
    }
}

impl PartnerDraft {
    /// An active partner without details, to be created without an email.
    pub fn new(email: Address, origin: PartnerOrigin) -> Self {
        Self {
            email,
            first_name: None,
            last_name: None,
            company: None,
            website: None,
            country: None,
            campaign: None,
            token: None,
            status: PartnerStatus::Active,
            paypal_email: None,
            tags: Vec::new(),
            notes: None,
            origin,
            parent: None,
            send_invite: false,
        }
    }
}

/// Parses a website URL, and adds `https://` if the scheme is missing.
///
/// # Errors
/// The reason as the end of a sentence that begins with the field's name.
pub fn parse_website(text: &str) -> Result<String, String> {
    let text = text.trim();
    let text = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    if text.len() > WEBSITE_BYTES_MAX {
        return Err(format!("is longer than {WEBSITE_BYTES_MAX} bytes"));
    }
    let is_readable = !text.chars().any(|c| c.is_control() || c.is_whitespace());
    // `origin::host_of` accepts http and https only.
    let end = text.find("://").map_or(0, |index| index + "://".len());
    let rest = text.get(end..).unwrap_or_default();
    let origin = text.get(..end + rest.find(['/', '?', '#']).unwrap_or(rest.len())).unwrap_or_default();
    let is_host = |host: &str| {
        let is_name = |host: &str| host.chars().all(|c| c.is_alphanumeric() || "-._".contains(c));
        is_name(host) || host.starts_with('[') && host.ends_with(']')
    };
    if !is_readable || !web_origin::host_of(origin).is_some_and(|host| is_host(&host)) {
        return Err("is not a website address such as https://example.org".to_owned());
    }
    Ok(text)
}

impl PayoutDestination {
    /// Validates a payout destination: an email address for PayPal and Wise, an account id for the payment processor,
    /// free text otherwise. An account of the payment processor is not payable until the processor confirms it.
    ///
    /// # Errors
    /// The reason as the end of a sentence that begins with the field's name.
    pub fn new(method: PayoutMethod, destination: &str) -> Result<Self, String> {
        let destination = destination.trim().replace("\r\n", "\n");
        if destination.is_empty() {
            return Err("is required".to_owned());
        }
        if destination.len() > DESTINATION_BYTES_MAX {
            return Err(format!("is longer than {DESTINATION_BYTES_MAX} bytes"));
        }
        if destination.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err("contains control characters".to_owned());
        }
        match method {
            PayoutMethod::Paypal | PayoutMethod::Wise if destination.parse::<Address>().is_err() => {
                Err("must be an email address".to_owned())
            }
            PayoutMethod::Stripe if !is_account(&destination) => Err("must be an account (`acct_…`)".to_owned()),
            _ => Ok(Self { method, destination, is_able: method.is_manual() }),
        }
    }
}

fn is_account(text: &str) -> bool {
    text.len() <= ACCOUNT_BYTES_MAX
        && text.strip_prefix("acct_").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn websites_are_validated() {
        for (text, expected) in [
            ("ada.example", Some("https://ada.example")),
            (" http://ada.example/x?y=1 ", Some("http://ada.example/x?y=1")),
            ("HTTPS://ada.example", Some("HTTPS://ada.example")),
            ("javascript:alert(1)", None),
            ("ftp://ada.example", None),
            ("https://", None),
            ("two words", None),
        ] {
            assert_eq!(parse_website(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn payout_destinations_are_validated() {
        for (method, text, expected) in [
            (PayoutMethod::Paypal, " ada@example.org ", Some(("ada@example.org", true))),
            (PayoutMethod::Wise, "ada", None),
            (PayoutMethod::Stripe, "acct_1A", Some(("acct_1A", false))),
            (PayoutMethod::Stripe, "acct_1 A", None),
            (PayoutMethod::Bank, "IBAN DE00\r\nAda", Some(("IBAN DE00\nAda", true))),
            (PayoutMethod::Other, " ", None),
            (PayoutMethod::Other, "a\u{0}b", None),
        ] {
            let destination = PayoutDestination::new(method, text).ok();
            let parsed = destination.as_ref().map(|payout| (payout.destination.as_str(), payout.is_able));
            assert_eq!(parsed, expected, "{method:?} {text:?}");
        }
        assert!(PayoutDestination::new(PayoutMethod::Other, &"x".repeat(DESTINATION_BYTES_MAX + 1)).is_err());
    }
}
