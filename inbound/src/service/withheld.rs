//! Withheld content: the service's own emails with a secret link, when this server receives them for a customer.
//!
//! A user's address can be at a domain whose mail an account receives here. Everybody who may read the received mail of
//! that account could then sign in as the user, whatever their role. So such an email is stored with its header and
//! with a text that says why its content is missing.

use bytes::Bytes;
use message::header;

/// The header fields that are kept.
const KEPT_FIELDS: [&str; 7] = ["From", "To", "Reply-To", "Date", "Subject", "Message-ID", "Auto-Submitted"];

const NOTICE: &[u8] = b"MIME-Version: 1.0\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n\
    This email has a link that only the person it is addressed to may use. The link is not shown here,\r\n\
    because others can read the received mail of this account.\r\n\r\n\
    Use an address whose mail another server receives, or sign in with a password.\r\n";

/// The message with the notice in place of its content.
pub(super) fn withhold_content(message: &[u8]) -> Bytes {
    let (fields, _) = header::parse_fields(message);
    let kept = fields.iter().filter(|field| KEPT_FIELDS.iter().any(|name| field.has_name(message, name)));
    let mut withheld: Vec<u8> =
        kept.filter_map(|field| message.get(field.start..field.end)).flatten().copied().collect();
    withheld.extend_from_slice(NOTICE);
    withheld.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_stays_and_the_content_goes() {
        let message = b"Received: x\r\nSubject: Sign\r\n in\r\nX-Link: secret\r\nFrom: a@b.example\r\n\r\nsecret\r\n";
        let withheld = withhold_content(message);
        assert!(withheld.starts_with(b"Subject: Sign\r\n in\r\nFrom: a@b.example\r\nMIME-Version"));
        assert!(memchr::memmem::find(&withheld, b"secret").is_none());
    }
}
