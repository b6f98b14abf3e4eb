//! Reads issuer, subject and validity of an X.509 certificate from its DER encoding (X.690).
//!
//! The certificate is the operator's own file, which rustls has accepted; anything unreadable yields none. Order of the
//! fields: RFC 5280 4.1; formats of times: RFC 5280 4.1.2.5.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// `[0] EXPLICIT`, the tag of the version.
const VERSION: u8 = 0xa0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CertificateFields {
    /// DER of the issuer's name.
    pub(super) issuer: Vec<u8>,
    /// DER of the subject's name.
    pub(super) subject: Vec<u8>,
    pub(super) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

pub(crate) fn parse_certificate(certificate: &[u8]) -> Option<CertificateFields> {
    let (_, mut outer, _) = read_element(certificate)?;
    let mut fields = next_sequence(&mut outer)?;
    if fields.first() == Some(&VERSION) {
        next_element(&mut fields)?;
    }
    let (_serial, _algorithm) = (next_element(&mut fields)?, next_element(&mut fields)?);
    let (_, issuer) = next_element(&mut fields)?;
    let mut validity = next_sequence(&mut fields)?;
    let (not_before, not_after) = (parse_time(&mut validity)?, parse_time(&mut validity)?);
    let (_, subject) = next_element(&mut fields)?;
    Some(CertificateFields { issuer: issuer.to_vec(), subject: subject.to_vec(), not_before, not_after })
}

/// Reads the first element. Returns its tag, its value, and the remaining bytes.
fn read_element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), rest)
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((tag, value, rest))
}

fn next_element<'a>(bytes: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (tag, value, rest) = read_element(bytes)?;
    *bytes = rest;
    Some((tag, value))
}

fn next_sequence<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    next_element(bytes).filter(|(tag, _)| *tag == SEQUENCE).map(|(_, value)| value)
}

/// Parses `YYMMDDHHMMSSZ` (1950 to 2049) or `YYYYMMDDHHMMSSZ`.
fn parse_time(bytes: &mut &[u8]) -> Option<Timestamp> {
    let (tag, text) = next_element(bytes)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let text_with_century = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", text_with_century).ok()?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_read() {
        let mut params = rcgen::CertificateParams::new(["mx1.example.net".to_owned()]).unwrap();
        params.not_before = rcgen::date_time_ymd(2024, 2, 29);
        params.not_after = rcgen::date_time_ymd(2051, 1, 2);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let read = parse_certificate(certificate.der()).unwrap();
        assert_eq!(read.issuer, read.subject);
        assert_eq!(read.not_before.to_string(), "2024-02-29T00:00:00Z");
        assert_eq!(read.not_after.to_string(), "2051-01-02T00:00:00Z");
        for end in 0..certificate.der().len() {
            let _ = parse_certificate(&certificate.der()[..end]);
        }
        assert_eq!(parse_certificate(b"\x30\x84\xff\xff\xff\xff"), None);
    }
}
