//! Writing the commands of a transaction.
//!
//! An [`Address`] contains no CR, LF or unquoted bracket, and parameters are encoded here. Each line is still checked
//! before it is sent: a byte that could end or forge a command fails the message, not the session.

use std::fmt::Write as _;

use message::address::Address;

use super::ehlo::EhloCapabilities;
use super::outgoing_message::{
    DeliverByParameter, DsnNotify, DsnParameters, DsnReturn, OriginalRecipient, OutgoingMessage,
};

/// RFC 3461 4.4: limit of the encoded value. A longer one is omitted.
const ENVID_BYTES_MAX: usize = 100;
/// RFC 3461 4.2: limit of the encoded value. A longer one is omitted.
const ORCPT_BYTES_MAX: usize = 500;

/// RFC 2852 4.1: `1*9DIGIT`.
const BY_SECONDS_MAX: i64 = 999_999_999;

/// The MAIL and RCPT commands, each with its CRLF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EnvelopeCommands {
    text: String,
    mail_length: usize,
}

impl EnvelopeCommands {
    /// Writes the envelope of a message of `size_bytes`, with the parameters that the host offers. Returns `None` if a
    /// command would contain a forbidden byte.
    pub(super) fn render(outgoing: &OutgoingMessage, size_bytes: u64, capabilities: &EhloCapabilities) -> Option<Self> {
        let utf8 = outgoing.needs_smtputf8();
        let mut text = String::with_capacity(256);
        text.push_str("MAIL FROM:<");
        push_path(&mut text, outgoing.sender.as_ref());
        text.push('>');
        if capabilities.size {
            let _ = write!(text, " SIZE={size_bytes}");
        }
        // Without 8BITMIME, 8-bit content is sent unchanged: large senders do so, hosts that corrupt it are rare now,
        // and a conversion would break signatures.
        if capabilities.eight_bit_mime && (outgoing.eight_bit || utf8) {
            text.push_str(" BODY=8BITMIME");
        }
        if capabilities.smtputf8 && utf8 {
            text.push_str(" SMTPUTF8");
        }
        if outgoing.require_tls {
            text.push_str(" REQUIRETLS");
        }
        let dsn = outgoing.dsn.as_ref().filter(|_| capabilities.dsn);
        if let Some(dsn) = dsn {
            push_mail_dsn(&mut text, dsn);
        }
        push_timing(&mut text, outgoing, capabilities);
        text.push_str("\r\n");
        let mail_length = text.len();
        text.push_str("RCPT TO:<");
        push_path(&mut text, Some(&outgoing.recipient));
        text.push('>');
        if let Some(dsn) = dsn {
            push_rcpt_dsn(&mut text, dsn);
        }
        text.push_str("\r\n");
        let envelope = Self { text, mail_length };
        (is_clean(envelope.mail(), utf8) && is_clean(envelope.rcpt(), utf8)).then_some(envelope)
    }

    pub(super) fn mail(&self) -> &[u8] {
        self.text.as_bytes().get(..self.mail_length).unwrap_or_default()
    }

    pub(super) fn rcpt(&self) -> &[u8] {
        self.text.as_bytes().get(self.mail_length..).unwrap_or_default()
    }
}

fn push_path(text: &mut String, address: Option<&Address>) {
    if let Some(address) = address {
        text.push_str(address.local_part());
        text.push('@');
        text.push_str(address.domain().as_str());
    }
}

fn push_mail_dsn(text: &mut String, dsn: &DsnParameters) {
    match dsn.ret {
        Some(DsnReturn::Full) => text.push_str(" RET=FULL"),
        Some(DsnReturn::Headers) => text.push_str(" RET=HDRS"),
        None => {}
    }
    if let Some(envid) = &dsn.envid {
        let encoded = xtext(envid);
        if !encoded.is_empty() && encoded.len() <= ENVID_BYTES_MAX {
            let _ = write!(text, " ENVID={encoded}");
        }
    }
}

/// BY is omitted if the host's minimum exceeds the time that is left: it would reject the message (RFC 2852 4.1.3).
fn push_timing(text: &mut String, outgoing: &OutgoingMessage, capabilities: &EhloCapabilities) {
    let least_s = capabilities.deliver_by.map(|least_s| i64::try_from(least_s).unwrap_or(i64::MAX));
    if let (Some(by @ DeliverByParameter { return_if_late, .. }), Some(least_s)) = (outgoing.deliver_by, least_s) {
        let seconds = by.remaining_s().clamp(-BY_SECONDS_MAX, BY_SECONDS_MAX);
        if !return_if_late || seconds >= least_s.max(1) {
            let _ = write!(text, " BY={seconds};{}", if return_if_late { 'R' } else { 'N' });
        }
    }
    if let Some(priority) = outgoing.priority.filter(|_| capabilities.mt_priority) {
        let _ = write!(text, " MT-PRIORITY={}", i8::from(priority));
    }
}

fn push_rcpt_dsn(text: &mut String, dsn: &DsnParameters) {
    match dsn.notify {
        Some(DsnNotify::Never) => text.push_str(" NOTIFY=NEVER"),
        Some(DsnNotify::On { success, failure, delay }) if success || failure || delay => {
            let words = [(success, "SUCCESS"), (failure, "FAILURE"), (delay, "DELAY")];
            let mut between = " NOTIFY=";
            for (_, word) in words.iter().filter(|(is_requested, _)| *is_requested) {
                text.push_str(between);
                text.push_str(word);
                between = ",";
            }
        }
        _ => {}
    }
    if let Some(OriginalRecipient { kind, address }) = &dsn.original_recipient {
        let encoded = if kind.eq_ignore_ascii_case("utf-8") { unitext(address) } else { xtext(address) };
        let is_atom = !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let length = kind.len() + 1 + encoded.len();
        if is_atom && !encoded.is_empty() && length <= ORCPT_BYTES_MAX {
            let _ = write!(text, " ORCPT={kind};{encoded}");
        }
    }
}

/// RFC 3461 4: printable ASCII except `+` and `=` is literal; other bytes are `+` and two hex digits.
fn xtext(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'!'..=b'~' if byte != b'+' && byte != b'=' => out.push(char::from(byte)),
            _ => {
                let _ = write!(out, "+{byte:02X}");
            }
        }
    }
    out
}

/// RFC 6533 3, `utf-8-addr-xtext`: valid with and without SMTPUTF8.
fn unitext(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '!'..='~' if !matches!(c, '+' | '=' | '\\') => out.push(c),
            _ => {
                let _ = write!(out, "\\x{{{:X}}}", u32::from(c));
            }
        }
    }
    out
}

/// True if the line ends in its only CRLF and has no control characters, and is ASCII unless `utf8`.
fn is_clean(line: &[u8], utf8: bool) -> bool {
    line.strip_suffix(b"\r\n").is_some_and(|text| text.iter().all(|&b| b >= b' ' && b != 0x7f && (utf8 || b < 0x80)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::Instant;

    fn outgoing(sender: &str, recipient: &str) -> OutgoingMessage {
        OutgoingMessage {
            sender: (!sender.is_empty()).then(|| sender.parse().unwrap()),
            recipient: recipient.parse().unwrap(),
            body: vec!["x\r\n".into()],
            eight_bit: false,
            smtputf8: false,
            require_tls: false,
            dsn: None,
            deliver_by: None,
            priority: None,
        }
    }

    fn rendered(outgoing: &OutgoingMessage, capabilities: &EhloCapabilities) -> String {
        EnvelopeCommands::render(outgoing, 3, capabilities).unwrap().text
    }

    fn all_capabilities() -> EhloCapabilities {
        EhloCapabilities {
            eight_bit_mime: true,
            smtputf8: true,
            size: true,
            dsn: true,
            require_tls: true,
            ..EhloCapabilities::default()
        }
    }

    #[test]
    fn parameters_only_when_offered_and_needed() {
        let plain = outgoing("", "a@b.example");
        assert_eq!(rendered(&plain, &EhloCapabilities::default()), "MAIL FROM:<>\r\nRCPT TO:<a@b.example>\r\n");
        assert_eq!(rendered(&plain, &all_capabilities()), "MAIL FROM:<> SIZE=3\r\nRCPT TO:<a@b.example>\r\n");
        let mut full = outgoing("v+1@rp.example", "\"a b\"@b.example");
        full.eight_bit = true;
        full.require_tls = true;
        full.dsn = Some(DsnParameters {
            ret: Some(DsnReturn::Headers),
            envid: Some("a+b c".into()),
            notify: Some(DsnNotify::On { success: true, failure: true, delay: false }),
            original_recipient: Some(OriginalRecipient { kind: "rfc822".into(), address: "x=y@z".into() }),
        });
        assert_eq!(
            rendered(&full, &all_capabilities()),
            "MAIL FROM:<v+1@rp.example> SIZE=3 BODY=8BITMIME REQUIRETLS RET=HDRS ENVID=a+2Bb+20c\r\n\
             RCPT TO:<\"a b\"@b.example> NOTIFY=SUCCESS,FAILURE ORCPT=rfc822;x+3Dy@z\r\n"
        );
    }

    #[test]
    fn remaining_deliverby_time_is_sent_if_offered() {
        let capabilities = EhloCapabilities { deliver_by: Some(60), mt_priority: true, ..EhloCapabilities::default() };
        let mail_parameters = |seconds, returns, offered: &EhloCapabilities| {
            let by = Some(DeliverByParameter { seconds, since: Instant::now(), return_if_late: returns });
            let priority = model::email::Priority::new(-3);
            rendered(&OutgoingMessage { deliver_by: by, priority, ..outgoing("", "a@b.example") }, offered)
                .lines()
                .next()
                .map(|mail| mail.trim_start_matches("MAIL FROM:<>").to_owned())
                .unwrap()
        };
        assert_eq!(mail_parameters(90, true, &capabilities), " BY=90;R MT-PRIORITY=-3");
        assert_eq!(mail_parameters(59, true, &capabilities), " MT-PRIORITY=-3");
        assert_eq!(mail_parameters(-5, false, &capabilities), " BY=-5;N MT-PRIORITY=-3");
        assert_eq!(mail_parameters(i64::MAX, true, &capabilities), " BY=999999999;R MT-PRIORITY=-3");
        let any = EhloCapabilities { deliver_by: Some(0), ..EhloCapabilities::default() };
        assert_eq!(
            (mail_parameters(0, true, &any), mail_parameters(1, true, &any)),
            (String::new(), " BY=1;R".to_owned())
        );
        assert_eq!(mail_parameters(90, true, &EhloCapabilities::default()), "");
    }

    #[test]
    fn utf8_addresses_bring_smtputf8_and_8bitmime() {
        let text = rendered(&outgoing("", "jos\u{e9}@b.example"), &all_capabilities());
        assert_eq!(text, "MAIL FROM:<> SIZE=3 BODY=8BITMIME SMTPUTF8\r\nRCPT TO:<jos\u{e9}@b.example>\r\n");
    }

    #[test]
    fn dsn_values_are_encoded_and_bounded() {
        let mut odd = outgoing("", "a@b.example");
        odd.dsn = Some(DsnParameters {
            ret: Some(DsnReturn::Full),
            envid: Some("x".repeat(101)),
            notify: Some(DsnNotify::On { success: false, failure: false, delay: false }),
            original_recipient: Some(OriginalRecipient { kind: "utf-8".into(), address: "j\u{e9}\\@b".into() }),
        });
        assert_eq!(
            rendered(&odd, &all_capabilities()),
            "MAIL FROM:<> SIZE=3 RET=FULL\r\nRCPT TO:<a@b.example> ORCPT=utf-8;j\\x{E9}\\x{5C}@b\r\n"
        );
        odd.dsn = Some(DsnParameters {
            envid: Some("a\r\nRSET".into()),
            notify: Some(DsnNotify::Never),
            original_recipient: Some(OriginalRecipient { kind: "rfc822;x y".into(), address: "a".into() }),
            ret: None,
        });
        assert_eq!(
            rendered(&odd, &all_capabilities()),
            "MAIL FROM:<> SIZE=3 ENVID=a+0D+0ARSET\r\nRCPT TO:<a@b.example> NOTIFY=NEVER\r\n"
        );
    }

    #[test]
    fn a_line_with_forbidden_bytes_is_not_sent() {
        for (line, utf8) in [
            (&b"RCPT TO:<a@b>"[..], false),
            (b"RCPT TO:<a@b>\n\r\n", false),
            (b"RCPT TO:<a\rb>\r\n", true),
            (b"RCPT TO:<a\0b>\r\n", true),
            (b"RCPT TO:<a\x7fb>\r\n", true),
            (b"RCPT TO:<\xc3\xa9@b>\r\n", false),
            (b"MAIL FROM:<>\r\nRSET\r\n", false),
        ] {
            assert!(!is_clean(line, utf8), "{line:?}");
        }
        assert!(is_clean(b"RCPT TO:<\xc3\xa9@b>\r\n", true));
    }
}
