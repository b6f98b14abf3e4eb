//! Verification of the `Stripe-Signature` header: authenticity and age of a webhook body.
//!
//! `Stripe-Signature: t=1767261601,v1=<hex>,v1=<hex>,v0=<hex>`: each `v1` is the HMAC-SHA256 of `t.body` under one
//! secret; other schemes are ignored. During a rotation there is one `v1` per secret.

use aws_lc_rs::{constant_time, hmac};
use jiff::Timestamp;
use message::hexadecimal;
use thiserror::Error;

/// Name of the header field.
pub const HEADER: &str = "Stripe-Signature";
/// Maximum difference between the signature's time and the local clock, in seconds.
pub const TOLERANCE_S: u64 = 300;
/// Maximum length of the header.
const HEADER_BYTES_MAX: usize = 4_096;
const PARTS_MAX: usize = 32;
/// Length of an HMAC-SHA256.
const TAG_BYTES: usize = 32;
/// Maximum digits of the time: enough for 30,000 years.
const TIME_DIGITS_MAX: usize = 12;

/// Why a signature is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SignatureError {
    /// Exceeds the limits on bytes or parts.
    #[error("the signature header is longer than {HEADER_BYTES_MAX} bytes or {PARTS_MAX} parts")]
    TooLong,
    /// No `t`, more than one, or not a number of seconds.
    #[error("the signature header must have exactly one t with a number of seconds")]
    NoTime,
    #[error("the signature header has no v1 of 64 hexadecimal digits")]
    NoSignature,
    /// Signed too long ago, or in the future.
    #[error("the signature's time is {away_s} seconds away from now, more than {TOLERANCE_S}")]
    TimeOutOfTolerance {
        /// The difference in seconds.
        away_s: u64,
    },
    /// No signature matches any of the secrets.
    #[error("no signature matches a current webhook secret")]
    Mismatch,
}

/// Verifies a body against its signature header, and returns the time of signing.
///
/// `secrets` are the current ones, two during a rotation; empty secrets are ignored.
pub fn verify<S: AsRef<str>>(
    header: &str,
    body: &[u8],
    secrets: &[S],
    now: Timestamp,
) -> Result<Timestamp, SignatureError> {
    let SignatureHeader { time, signed_at, tags } = SignatureHeader::read(header)?;
    let away_s = signed_at.as_second().abs_diff(now.as_second());
    if away_s > TOLERANCE_S {
        return Err(SignatureError::TimeOutOfTolerance { away_s });
    }
    // All pairs are compared, so that the time taken does not depend on which one matches.
    let mut holds = false;
    for secret in secrets.iter().map(AsRef::as_ref).filter(|secret| !secret.is_empty()) {
        let expected = tag(secret, time, body);
        for received in &tags {
            holds |= constant_time::verify_slices_are_equal(expected.as_ref(), received).is_ok();
        }
    }
    if holds { Ok(signed_at) } else { Err(SignatureError::Mismatch) }
}

/// Returns the header that a processor would send with this body; for tests and simulators.
pub fn sign(secret: &str, at: Timestamp, body: &[u8]) -> String {
    let time = at.as_second().to_string();
    format!("t={time},v1={}", hexadecimal::encode(tag(secret, &time, body)))
}

fn tag(secret: &str, time: &str, body: &[u8]) -> hmac::Tag {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = hmac::Context::with_key(&key);
    context.update(time.as_bytes());
    context.update(b".");
    context.update(body);
    context.sign()
}

/// The parsed header.
struct SignatureHeader<'a> {
    /// The time as written, because the signature covers this text.
    time: &'a str,
    signed_at: Timestamp,
    tags: Vec<[u8; TAG_BYTES]>,
}

impl<'a> SignatureHeader<'a> {
    fn read(header: &'a str) -> Result<Self, SignatureError> {
        if header.len() > HEADER_BYTES_MAX || header.split(',').count() > PARTS_MAX {
            return Err(SignatureError::TooLong);
        }
        let (mut times, mut tags) = (Vec::new(), Vec::new());
        for (scheme, value) in header.split(',').filter_map(|part| part.trim().split_once('=')) {
            match scheme {
                "t" => times.push(value),
                "v1" => tags.extend(hexadecimal::decode(value).and_then(|tag| <[u8; TAG_BYTES]>::try_from(tag).ok())),
                _ => {}
            }
        }
        let [time] = times[..] else { return Err(SignatureError::NoTime) };
        let signed_at = seconds(time).ok_or(SignatureError::NoTime)?;
        if tags.is_empty() {
            return Err(SignatureError::NoSignature);
        }
        Ok(Self { time, signed_at, tags })
    }
}

fn seconds(text: &str) -> Option<Timestamp> {
    let digits = text.len() <= TIME_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds = text.parse().ok().filter(|_| digits)?;
    Timestamp::from_second(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"evt_2Kq","object":"event"}"#;
    const OLD: &str = "whsec_old";
    const NEW: &str = "whsec_new";

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    /// Expected value computed by `openssl dgst -sha256 -hmac whsec_new` of `1767261601.` and the body.
    #[test]
    fn a_signature_equals_that_of_openssl() {
        let header = sign(NEW, at(1_767_261_601), BODY);
        assert_eq!(header, "t=1767261601,v1=4fbd9d1d3d1ee1d782ebb4b8da7d3dda0f0aa783ffd66c29ca52a99157a7fc0d");
        assert_eq!(verify(&header, BODY, &[NEW], at(1_767_261_601)), Ok(at(1_767_261_601)));
    }

    #[test]
    fn any_signature_with_any_secret_is_valid() {
        let now = at(1_767_261_700);
        let signed = |secret: &str| sign(secret, at(1_767_261_601), BODY);
        let v1 = |secret: &str| signed(secret).split_once(',').unwrap().1.to_owned();
        let with_both = format!("{},{}", signed(OLD), v1(NEW));
        let with_noise = format!("v0=ab, t=1767261601 ,v1=nothex,v1=ab,{},v2=x,=,", v1(NEW));
        let upper = signed(NEW).to_uppercase().replace("T=", "t=").replace("V1=", "v1=");
        for (header, secrets) in [
            (signed(OLD), vec![OLD, NEW]),
            (signed(NEW), vec![OLD, NEW]),
            (with_both.clone(), vec![NEW]),
            (with_both, vec!["", OLD]),
            (with_noise, vec![NEW]),
            (upper, vec![NEW]),
        ] {
            assert_eq!(verify(&header, BODY, &secrets, now), Ok(at(1_767_261_601)), "{header}");
        }
    }

    #[test]
    fn invalid_signatures_are_rejected_with_their_cause() {
        let signed_at = at(1_767_261_601);
        let now = signed_at;
        let valid = sign(NEW, signed_at, BODY);
        let tag = valid.split_once("v1=").unwrap().1;
        let too_many = format!("{valid}{}", ",v0=ab".repeat(PARTS_MAX));
        let long = format!("{valid},v0={}", "a".repeat(HEADER_BYTES_MAX));
        for (header, error) in [
            (sign(OLD, signed_at, BODY), SignatureError::Mismatch),
            (sign(NEW, signed_at, b"{}"), SignatureError::Mismatch),
            (sign("", signed_at, BODY), SignatureError::Mismatch),
            (valid.replace("t=1767261601", "t=1767261602"), SignatureError::Mismatch),
            (valid.replace("t=1767261601", "t=01767261601"), SignatureError::Mismatch),
            (valid.replace("v1=", "v0="), SignatureError::NoSignature),
            (valid[..valid.len() - 1].to_owned(), SignatureError::NoSignature),
            (format!("{valid}0"), SignatureError::NoSignature),
            (format!("v1={tag}"), SignatureError::NoTime),
            (format!("t=,v1={tag}"), SignatureError::NoTime),
            (format!("t=-1,v1={tag}"), SignatureError::NoTime),
            (format!("t=+1767261601,v1={tag}"), SignatureError::NoTime),
            (format!("t=9999999999999,v1={tag}"), SignatureError::NoTime),
            (format!("t=1,{valid}"), SignatureError::NoTime),
            (String::new(), SignatureError::NoTime),
            (too_many, SignatureError::TooLong),
            (long, SignatureError::TooLong),
        ] {
            assert_eq!(verify(&header, BODY, &[NEW, ""], now), Err(error), "{header}");
        }
        assert_eq!(verify::<&str>(&valid, BODY, &[], now), Err(SignatureError::Mismatch));
    }

    #[test]
    fn an_old_signature_is_rejected() {
        let header = sign(NEW, at(1_767_261_601), BODY);
        let is_valid_after = |seconds: i64| verify(&header, BODY, &[NEW], at(1_767_261_601 + seconds)).is_ok();
        assert!(is_valid_after(300) && is_valid_after(-300));
        assert!(!is_valid_after(301) && !is_valid_after(-301));
        assert_eq!(
            verify(&header, BODY, &[NEW], at(0)),
            Err(SignatureError::TimeOutOfTolerance { away_s: 1_767_261_601 })
        );
    }
}
