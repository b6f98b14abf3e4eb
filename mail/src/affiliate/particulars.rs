//! What is said of a partner, whoever says it (the owner by the API or by a list, the partner by a form): how long it may be
//! and what it must look like, once for all doors.

use super::origin;
use super::partner::PayoutDestination;
use super::program::PayoutMethod;
use crate::address::Address;

/// The longest name, company or campaign, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// The longest address of a website.
pub const WEBSITE_BYTES_MAX: usize = 2_000;
/// The longest note.
pub const NOTES_BYTES_MAX: usize = 10_000;
/// The longest tag.
pub const TAG_BYTES_MAX: usize = 64;
/// The longest destination: the words of a bank transfer.
pub const DESTINATION_BYTES_MAX: usize = 1_000;
/// The longest id of an account at the processor.
const ACCOUNT_BYTES_MAX: usize = 255;

/// A website; people leave `https://` out.
///
/// # Errors
/// What is wrong with it, as the end of a sentence.
pub fn parse_website(text: &str) -> Result<String, String> {
    let text = text.trim();
    let text = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    if text.len() > WEBSITE_BYTES_MAX {
        return Err(format!("is longer than {WEBSITE_BYTES_MAX} bytes"));
    }
    let is_readable = !text.chars().any(|c| c.is_control() || c.is_whitespace());
    // Of http and https only there is one.
    let end = text.find("://").map_or(0, |place| place + "://".len());
    let rest = text.get(end..).unwrap_or_default();
    let origin = text.get(..end + rest.find(['/', '?', '#']).unwrap_or(rest.len())).unwrap_or_default();
    let is_host = |host: &str| {
        let is_name = |host: &str| host.chars().all(|c| c.is_alphanumeric() || "-._".contains(c));
        is_name(host) || host.starts_with('[') && host.ends_with(']')
    };
    if !is_readable || !origin::host_of(origin).is_some_and(|host| is_host(&host)) {
        return Err("is no address of a website, like https://example.org".to_owned());
    }
    Ok(text)
}

impl PayoutDestination {
    /// Where money can go: an address for PayPal and Wise, an account for the processor, else words. An account of the
    /// processor's is ready once that has said so.
    ///
    /// # Errors
    /// What is wrong with the destination, as the end of a sentence.
    pub fn new(method: PayoutMethod, destination: &str) -> Result<Self, String> {
        let destination = destination.trim().replace("\r\n", "\n");
        if destination.is_empty() {
            return Err("is required".to_owned());
        }
        if destination.len() > DESTINATION_BYTES_MAX {
            return Err(format!("is longer than {DESTINATION_BYTES_MAX} bytes"));
        }
        if destination.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
            return Err("has characters that cannot be read".to_owned());
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
    fn websites_are_addresses_of_the_web() {
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
    fn money_goes_where_it_can() {
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
            let said = destination.as_ref().map(|one| (one.destination.as_str(), one.is_able));
            assert_eq!(said, expected, "{method:?} {text:?}");
        }
        assert!(PayoutDestination::new(PayoutMethod::Other, &"x".repeat(DESTINATION_BYTES_MAX + 1)).is_err());
    }
}
