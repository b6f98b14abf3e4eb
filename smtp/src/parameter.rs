//! Parses the parameters of MAIL and RCPT.
//!
//! - MAIL: SIZE (RFC 1870), BODY (RFC 6152, 3030), SMTPUTF8 (RFC 6531), RET and ENVID (RFC 3461), REQUIRETLS (RFC
//!   8689), AUTH (RFC 4954 5, validated and ignored), and those of timing.rs.
//! - RCPT: NOTIFY and ORCPT (RFC 3461).
//!
//! smtp-proto parses the values of MAIL's parameters. Errors that it accepts are checked here first: a duplicate
//! parameter, a number with more digits than RFC 1870 allows (its parser wraps), malformed xtext, a value after a
//! keyword that takes none. RCPT's parameters are parsed here, because smtp-proto accepts `NEVER` together with other
//! values and refuses `utf-8` addresses (RFC 6533).

mod timing;

use std::borrow::Cow;

use message::reply::{Enhanced, SmtpReply};
use model::draft::{DeliverBy, FutureRelease};
use model::email::Priority;
use model::recipient::DsnOptions;
use smtp_proto::request::parser::Rfc5321Parser;
use smtp_proto::{MAIL_BODY_BINARYMIME, MAIL_REQUIRETLS, MAIL_RET_FULL, MAIL_SMTPUTF8};

use crate::settings::ListenerRole;

/// RFC 3461 4.4.
const ENVID_CHARS_MAX: usize = 100;
/// RFC 3461 4.2.
const ORCPT_CHARS_MAX: usize = 500;
/// RFC 1870 3: `1*20DIGIT`.
const SIZE_DIGITS_MAX: usize = 20;
/// More parameters than there are keywords are a mistake or an attack.
const PARAMETERS_MAX: usize = 16;

/// The reason why parameters are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterError {
    /// The keyword is not offered by this listener.
    Unknown(String),
    /// The value of this keyword is invalid.
    Invalid(&'static str),
    /// The keyword occurs twice.
    Duplicate(&'static str),
    /// Not of the form KEYWORD or KEYWORD=value.
    Syntax,
}

impl ParameterError {
    /// The reply to the client (RFC 5321 4.2.4): 555 for an unknown parameter, 501 for an invalid one.
    pub fn reply(&self) -> SmtpReply {
        let (code, text) = match self {
            Self::Unknown(keyword) => (555, format!("{keyword} is not offered here")),
            Self::Invalid(keyword) => (501, format!("Bad value for {keyword}")),
            Self::Duplicate(keyword) => (501, format!("{keyword} is given twice")),
            Self::Syntax => (501, "Parameters have the form KEYWORD or KEYWORD=value".to_owned()),
        };
        SmtpReply::new(code, Enhanced::new(5, 5, 4), text)
    }
}

/// The parsed parameters of MAIL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailParameters {
    /// SIZE.
    pub size_bytes: Option<u64>,
    /// BODY=BINARYMIME.
    pub binary: bool,
    /// SMTPUTF8.
    pub smtputf8: bool,
    /// RET=FULL.
    pub return_full: bool,
    /// ENVID, decoded from xtext.
    pub envelope_id: Option<String>,
    /// REQUIRETLS.
    pub require_tls: bool,
    /// HOLDFOR or HOLDUNTIL.
    pub release: Option<FutureRelease>,
    /// BY.
    pub deliver_by: Option<DeliverBy>,
    /// MT-PRIORITY.
    pub priority: Option<Priority>,
}

/// A keyword, whether it has a value, and whether MX offers it: the MX listener offers neither DSN nor AUTH.
struct ParameterKeyword {
    name: &'static str,
    has_value: bool,
    at_mx: bool,
}

const MAIL: [ParameterKeyword; 11] = [
    ParameterKeyword { name: "SIZE", has_value: true, at_mx: true },
    ParameterKeyword { name: "BODY", has_value: true, at_mx: true },
    ParameterKeyword { name: "SMTPUTF8", has_value: false, at_mx: true },
    ParameterKeyword { name: "RET", has_value: true, at_mx: false },
    ParameterKeyword { name: "ENVID", has_value: true, at_mx: false },
    ParameterKeyword { name: "AUTH", has_value: true, at_mx: false },
    ParameterKeyword { name: "REQUIRETLS", has_value: false, at_mx: true },
    ParameterKeyword { name: "HOLDFOR", has_value: true, at_mx: false },
    ParameterKeyword { name: "HOLDUNTIL", has_value: true, at_mx: false },
    ParameterKeyword { name: "BY", has_value: true, at_mx: false },
    ParameterKeyword { name: "MT-PRIORITY", has_value: true, at_mx: false },
];
const RCPT: [ParameterKeyword; 2] = [
    ParameterKeyword { name: "NOTIFY", has_value: true, at_mx: false },
    ParameterKeyword { name: "ORCPT", has_value: true, at_mx: false },
];

/// Splits `tail` into parameters and checks each against the table. Returns keywords and values.
fn parse_words<'a>(
    tail: &'a [u8],
    table: &'static [ParameterKeyword],
    role: ListenerRole,
) -> Result<Vec<(&'static str, &'a str)>, ParameterError> {
    let text = std::str::from_utf8(tail).map_err(|_| ParameterError::Syntax)?;
    let mut found: Vec<(&'static str, &str)> = Vec::new();
    for word in text.split(' ').map(|w| w.trim_end_matches(['\r', '\n'])).filter(|w| !w.is_empty()) {
        if found.len() == PARAMETERS_MAX || word.chars().any(char::is_control) {
            return Err(ParameterError::Syntax);
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
            return Err(ParameterError::Syntax);
        }
        let offered =
            |k: &&ParameterKeyword| k.name.eq_ignore_ascii_case(name) && (k.at_mx || role != ListenerRole::Mx);
        let Some(keyword) = table.iter().find(offered) else {
            return Err(ParameterError::Unknown(name.chars().take(32).collect()));
        };
        if keyword.has_value != value.is_some() || value == Some("") {
            return Err(ParameterError::Invalid(keyword.name));
        }
        if found.iter().any(|(name, _)| *name == keyword.name) {
            return Err(ParameterError::Duplicate(keyword.name));
        }
        found.push((keyword.name, value.unwrap_or_default()));
    }
    Ok(found)
}

/// Parses the parameters behind the path of MAIL; `tail` ends with the line's CRLF.
///
/// # Errors
/// The first [`ParameterError`].
pub fn parse_mail_parameters(tail: &[u8], role: ListenerRole) -> Result<MailParameters, ParameterError> {
    if tail.trim_ascii().is_empty() {
        return Ok(MailParameters::default());
    }
    let words = parse_words(tail, &MAIL, role)?;
    let mut parameters = MailParameters::default();
    let (mut envelope_id, mut sized) = (None, false);
    let mut others = String::new();
    for (name, value) in &words {
        match read_timing(name, value, &mut parameters) {
            Some(true) => continue,
            Some(false) => return Err(ParameterError::Invalid(name)),
            None => {}
        }
        others.push(' ');
        others.push_str(name);
        if !value.is_empty() {
            others.push('=');
            others.push_str(value);
        }
        let good = match *name {
            "SIZE" => {
                sized = true;
                value.len() <= SIZE_DIGITS_MAX && value.bytes().all(|b| b.is_ascii_digit())
            }
            "ENVID" => {
                envelope_id = decode_xtext(value);
                value.len() <= ENVID_CHARS_MAX && envelope_id.is_some()
            }
            "AUTH" => *value == "<>" || is_xtext(value),
            _ => true,
        };
        if !good {
            return Err(ParameterError::Invalid(name));
        }
    }
    others.push_str("\r\n");
    let mut bytes = others.as_bytes().iter();
    let parsed = Rfc5321Parser::new(&mut bytes).mail_from_parameters(Cow::Borrowed("")).map_err(|e| match e {
        smtp_proto::Error::InvalidParameter { param } => ParameterError::Invalid(param),
        smtp_proto::Error::UnsupportedParameter { param } => ParameterError::Unknown(param),
        _ => ParameterError::Syntax,
    })?;
    Ok(MailParameters {
        size_bytes: sized.then(|| u64::try_from(parsed.size).unwrap_or(u64::MAX)),
        binary: parsed.flags & MAIL_BODY_BINARYMIME != 0,
        smtputf8: parsed.flags & MAIL_SMTPUTF8 != 0,
        return_full: parsed.flags & MAIL_RET_FULL != 0,
        require_tls: parsed.flags & MAIL_REQUIRETLS != 0,
        envelope_id,
        ..parameters
    })
}

/// Parses a timing or priority parameter into `parameters`. Returns `None` for any other parameter and false for an
/// invalid value. HOLDFOR and HOLDUNTIL exclude each other (RFC 4865 4).
fn read_timing(name: &str, value: &str, parameters: &mut MailParameters) -> Option<bool> {
    let is_free = parameters.release.is_none();
    match name {
        "HOLDFOR" => parameters.release = timing::parse_hold_for(value).filter(|_| is_free),
        "HOLDUNTIL" => parameters.release = timing::parse_hold_until(value).filter(|_| is_free),
        "BY" => {
            parameters.deliver_by = timing::parse_deliver_by(value);
            return Some(parameters.deliver_by.is_some());
        }
        "MT-PRIORITY" => {
            parameters.priority = timing::parse_mt_priority(value);
            return Some(parameters.priority.is_some());
        }
        _ => return None,
    }
    Some(parameters.release.is_some())
}

/// Returns whether `tail` contains SMTPUTF8, which decides whether the path before it may be UTF-8.
pub fn asks_smtputf8(tail: &[u8]) -> bool {
    tail.split(u8::is_ascii_whitespace).any(|word| word.eq_ignore_ascii_case(b"SMTPUTF8"))
}

/// Parses the parameters behind the path of RCPT; `tail` ends with the line's CRLF.
///
/// # Errors
/// The first [`ParameterError`].
pub fn parse_rcpt_parameters(tail: &[u8], smtputf8: bool, role: ListenerRole) -> Result<DsnOptions, ParameterError> {
    if tail.trim_ascii().is_empty() {
        return Ok(DsnOptions::default());
    }
    let mut notify = DsnOptions::default();
    for (name, value) in parse_words(tail, &RCPT, role)? {
        let good = match name {
            "NOTIFY" => read_notify(value, &mut notify),
            _ => {
                notify.original_recipient = parse_original_recipient(value, smtputf8);
                value.len() <= ORCPT_CHARS_MAX && notify.original_recipient.is_some()
            }
        };
        if !good {
            return Err(ParameterError::Invalid(name));
        }
    }
    Ok(notify)
}

/// Parses `NEVER`, or `SUCCESS`, `FAILURE` and `DELAY`, each at most once (RFC 3461 4.1). Returns false if invalid.
fn read_notify(value: &str, notify: &mut DsnOptions) -> bool {
    if value.eq_ignore_ascii_case("NEVER") {
        notify.never = true;
        return true;
    }
    let mut failure = false;
    for word in value.split(',') {
        let slot = match word {
            w if w.eq_ignore_ascii_case("SUCCESS") => &mut notify.success,
            w if w.eq_ignore_ascii_case("DELAY") => &mut notify.delay,
            w if w.eq_ignore_ascii_case("FAILURE") => &mut failure,
            _ => return false,
        };
        if std::mem::replace(slot, true) {
            return false;
        }
    }
    notify.not_failure = !failure;
    true
}

/// Parses `addr-type ";" xtext` and decodes it (RFC 3461 4.2). For the type `utf-8`, RFC 6533 3 also allows UTF-8,
/// plain or as `\x{E9}`.
fn parse_original_recipient(value: &str, smtputf8: bool) -> Option<String> {
    let (kind, address) = value.split_once(';')?;
    if kind.is_empty() || !kind.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return None;
    }
    let address = if !kind.eq_ignore_ascii_case("utf-8") {
        decode_xtext(address)?
    } else if smtputf8 || address.is_ascii() {
        decode_unitext(address)?
    } else {
        return None;
    };
    (!address.is_empty()).then(|| format!("{kind};{address}"))
}

/// Decodes xtext. Returns `None` if it is invalid or encodes a control character: RFC 3461 4.4 allows printable
/// characters only, and DSNs repeat the text.
fn decode_xtext(text: &str) -> Option<String> {
    if !is_xtext(text) {
        return None;
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(if byte == b'+' {
            let hex = [bytes.next()?, bytes.next()?];
            u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?
        } else {
            byte
        });
    }
    String::from_utf8(out).ok().filter(|out| !out.is_empty() && !out.chars().any(char::is_control))
}

/// Decodes `utf-8-addr-xtext` or `utf-8-addr-unitext` (RFC 6533 3).
fn decode_unitext(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tail)) = rest.split_once("\\x{") {
        out.push_str(before);
        let (hex, after) = tail.split_once('}')?;
        out.push((2..=6).contains(&hex.len()).then(|| u32::from_str_radix(hex, 16).ok().and_then(char::from_u32))??);
        rest = after;
    }
    out.push_str(rest);
    let clean = !rest.contains(['\\', '+', '=']) && !out.chars().any(|c| c.is_control() || c == ' ');
    clean.then_some(out)
}

/// Returns whether text is xtext (RFC 3461 4): printable ASCII except `+` and `=`; other characters as `+` and two
/// upper-case hex digits.
fn is_xtext(text: &str) -> bool {
    let is_hex = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_digit() || (b'A'..=b'F').contains(&b));
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' if is_hex(bytes.next()) && is_hex(bytes.next()) => {}
            b'+' | b'=' => return false,
            b'!'..=b'~' => {}
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(tail: &[u8]) -> Result<MailParameters, ParameterError> {
        super::parse_mail_parameters(tail, ListenerRole::Submission)
    }

    fn rcpt(tail: &[u8], smtputf8: bool) -> Result<DsnOptions, ParameterError> {
        super::parse_rcpt_parameters(tail, smtputf8, ListenerRole::Submission)
    }

    #[test]
    fn parameters_of_submission_are_unknown_at_mx() {
        assert!(super::parse_mail_parameters(b" SIZE=1000 BODY=8BITMIME SMTPUTF8\r\n", ListenerRole::Mx).is_ok());
        for tail in [" RET=FULL\r\n", " ENVID=a\r\n", " AUTH=<>\r\n", " HOLDFOR=1\r\n", " BY=1;R\r\n"] {
            let refused = super::parse_mail_parameters(tail.as_bytes(), ListenerRole::Mx);
            assert!(matches!(refused, Err(ParameterError::Unknown(_))), "{tail}");
        }
        for tail in [" NOTIFY=NEVER\r\n", " ORCPT=rfc822;a@b\r\n"] {
            let refused = super::parse_rcpt_parameters(tail.as_bytes(), false, ListenerRole::Mx);
            assert!(matches!(refused, Err(ParameterError::Unknown(_))), "{tail}");
        }
    }

    #[test]
    fn mail_parameters_are_read() {
        let read = mail(b" SIZE=1000 body=8bitmime SMTPUTF8 RET=FULL ENVID=a+2Bb REQUIRETLS AUTH=<>\r\n").unwrap();
        assert_eq!(read.size_bytes, Some(1000));
        assert!(read.smtputf8 && read.return_full && read.require_tls && !read.binary);
        assert_eq!(read.envelope_id.as_deref(), Some("a+b"));
        let read = mail(b" BY=60;R SIZE=5 mt-priority=4 HOLDFOR=7\r\n").unwrap();
        assert_eq!((read.size_bytes, read.priority), (Some(5), Priority::new(4)));
        assert!(read.deliver_by.is_some() && read.release.is_some());
        assert!(mail(b" BODY=BINARYMIME \r\n").unwrap().binary);
        assert_eq!(mail(b"\r\n"), Ok(MailParameters::default()));
        assert_eq!(mail(b" SIZE=18446744073709551614\r\n").unwrap().size_bytes, Some(u64::MAX - 1));
    }

    #[test]
    fn bad_mail_parameters_are_refused() {
        for tail in [
            " SIZE",
            " SIZE=",
            " SIZE=x",
            " SIZE=-1",
            " SIZE=99999999999999999999",
            " SIZE=999999999999999999999",
            " SIZE=1 SIZE=1",
            " BODY",
            " BODY=9BIT",
            " BODY=8BITMIME BODY=7BIT",
            " RET=HALF",
            " RET=FULL RET=HDRS",
            " ENVID=a+2b",
            " ENVID=",
            " ENVID=a=b",
            " ENVID=+4",
            " ENVID=a+0D+0Ab",
            " SMTPUTF8=1",
            " SMTPUTF8 SMTPUTF8",
            " HOLDFOR=0",
            " HOLDFOR=1 HOLDUNTIL=2030-01-31T08:00:00Z",
            " BY=0;R",
            " FOO",
            " FOO=bar",
            " =",
            " =x",
            " REQUIRETLS=yes",
            " AUTH",
            " AUTH=+zz",
            " MT-PRIORITY=10",
            " NOTIFY=NEVER",
        ] {
            assert!(mail(format!("{tail}\r\n").as_bytes()).is_err(), "{tail}");
        }
        assert!(mail(format!(" ENVID={}\r\n", "a".repeat(101)).as_bytes()).is_err());
    }

    #[test]
    fn rcpt_parameters_are_read() {
        assert!(rcpt(b" NOTIFY=NEVER\r\n", false).unwrap().never);
        let notify = rcpt(b" notify=success,Delay ORCPT=rfc822;a+40b\r\n", false).unwrap();
        assert!(notify.success && notify.delay && notify.not_failure);
        assert_eq!(notify.original_recipient.as_deref(), Some("rfc822;a@b"));
        assert!(rcpt(b" NOTIFY=FAILURE\r\n", false).unwrap().wants_failure());
        assert!(rcpt(" ORCPT=utf-8;j\u{f6}@x.example\r\n".as_bytes(), true).is_ok());
        let parsed = rcpt(b" ORCPT=utf-8;j\\x{F6}@x.example\r\n", false).unwrap().original_recipient;
        assert_eq!(parsed.as_deref(), Some("utf-8;j\u{f6}@x.example"));
    }

    #[test]
    fn bad_rcpt_parameters_are_refused() {
        for tail in [
            " NOTIFY",
            " NOTIFY=",
            " NOTIFY=NEVER,SUCCESS",
            " NOTIFY=SUCCESS,NEVER",
            " NOTIFY=SUCCESS,SUCCESS",
            " NOTIFY=SOON",
            " NOTIFY=SUCCESS,",
            " NOTIFY=NEVER NOTIFY=NEVER",
            " ORCPT=a@b.example",
            " ORCPT=rfc822;",
            " ORCPT=;a",
            " ORCPT=rfc822;a=b",
            " ORCPT=rfc822;j\u{f6}",
            " ORCPT=rfc822;a ORCPT=rfc822;b",
            " SIZE=1",
            " X",
        ] {
            assert!(rcpt(format!("{tail}\r\n").as_bytes(), false).is_err(), "{tail}");
        }
        assert!(rcpt(format!(" ORCPT=rfc822;{}\r\n", "a".repeat(500)).as_bytes(), false).is_err());
    }
}
