//! One-time passwords (TOTP, RFC 6238) and recovery codes of a user.
//!
//! A code has six digits. It is computed by HMAC-SHA-1 from the secret and the number of 30-second steps since 1970
//! (RFC 6238 4, RFC 4226 5.3). It is accepted in its own step, the one before and the one after (RFC 6238 5.2), and
//! only once: the last accepted step is stored. A recovery code has 80 random bits and is accepted once. It cannot be
//! guessed, so its SHA-256 is stored instead of a slow hash.

use data_encoding::BASE32_NOPAD;
use jiff::Timestamp;
use message::percent;
use serde::{Deserialize, Serialize};

use crate::credential::SecretHash;
use crate::domain::SealedSecret;
use crate::redacted;

/// Length of a secret in bytes, as RFC 4226 4 recommends.
pub const SECRET_BYTES: usize = 20;
/// Number of recovery codes of a user.
pub const RECOVERY_CODES: usize = 10;
const STEP_SECONDS: u64 = 30;
/// Steps before and after the current one whose codes are accepted.
const SKEW_STEPS: u64 = 1;
const DIGITS: usize = 6;
const CODES: u32 = 1_000_000;
const RECOVERY_BYTES: usize = 10;
const RECOVERY_GROUP_CHARS: usize = 4;
/// Longer texts are not codes.
const CODE_TEXT_BYTES_MAX: usize = 64;

/// The one-time passwords of a user, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Totp {
    /// The user has a secret, but has not yet confirmed it with a code. Sign-in asks for no code.
    Pending { secret: SealedSecret },
    /// Sign-in asks for a code.
    Active {
        secret: SealedSecret,
        /// Step of the last accepted code. Codes of this step and of earlier ones are rejected.
        last_step: u64,
        /// Hashes of the unused recovery codes.
        recovery_codes: Vec<SecretHash>,
    },
}

/// The steps whose codes are accepted now, from the earliest.
pub fn acceptable_steps(now: Timestamp) -> impl Iterator<Item = u64> {
    let step = u64::try_from(now.as_second()).unwrap_or(0) / STEP_SECONDS;
    step.saturating_sub(SKEW_STEPS)..=step.saturating_add(SKEW_STEPS)
}

/// A code of six digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TotpCode(u32);

redacted!(TotpCode, "TotpCode(hidden)");

impl TotpCode {
    /// Truncates an HMAC-SHA-1 value (RFC 4226 5.3).
    pub fn from_hmac(tag: &[u8; 20]) -> Self {
        let offset = usize::from(tag[19] & 0xf);
        let word = [tag[offset] & 0x7f, tag[offset + 1], tag[offset + 2], tag[offset + 3]];
        Self(u32::from_be_bytes(word) % CODES)
    }

    /// The six digits.
    pub fn text(self) -> String {
        format!("{:0DIGITS$}", self.0)
    }
}

/// A recovery code: it replaces a one-time password once.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode([u8; RECOVERY_BYTES]);

redacted!(RecoveryCode, "RecoveryCode(hidden)");

impl RecoveryCode {
    /// Creates a code from random bytes, of which the first ten are used.
    pub fn new(random: &[u8; 32]) -> Self {
        let mut bytes = [0; RECOVERY_BYTES];
        bytes.iter_mut().zip(random).for_each(|(to, from)| *to = *from);
        Self(bytes)
    }

    /// The code as shown: four groups of four characters.
    pub fn text(&self) -> String {
        let letters: Vec<char> = base32(&self.0).chars().collect();
        let groups: Vec<String> = letters.chunks(RECOVERY_GROUP_CHARS).map(String::from_iter).collect();
        groups.join("-")
    }

    /// The hash to store.
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(&self.0)
    }
}

/// A code that a user enters: a one-time password or a recovery code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondFactorCode {
    Totp(TotpCode),
    Recovery(RecoveryCode),
}

impl SecondFactorCode {
    /// Parses a code; ignores spaces, hyphens and case. `None` if it has neither form.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > CODE_TEXT_BYTES_MAX {
            return None;
        }
        let code: Vec<u8> =
            text.bytes().filter(|byte| !matches!(byte, b' ' | b'-')).map(|byte| byte.to_ascii_uppercase()).collect();
        if code.len() == DIGITS && code.iter().all(u8::is_ascii_digit) {
            let number = code.iter().fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
            return Some(Self::Totp(TotpCode(number)));
        }
        let bytes = BASE32_NOPAD.decode(&code).ok()?.try_into().ok()?;
        Some(Self::Recovery(RecoveryCode(bytes)))
    }
}

/// Encodes bytes in base32 without padding (RFC 4648 6).
pub fn base32(bytes: &[u8]) -> String {
    BASE32_NOPAD.encode(bytes)
}

/// The URI that authenticator apps read from a QR code (Google Authenticator's "Key URI Format").
pub fn otpauth_uri(issuer: &str, user: &str, secret: &[u8]) -> String {
    let (issuer, user, secret) = (percent::encode(issuer), percent::encode(user), base32(secret));
    format!(
        "otpauth://totp/{issuer}:{user}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits={DIGITS}&period={STEP_SECONDS}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base32_encodes_the_examples_of_the_rfc() {
        // RFC 4648 10, without padding.
        for (bytes, text) in [("", ""), ("f", "MY"), ("fo", "MZXQ"), ("foo", "MZXW6"), ("foobar", "MZXW6YTBOI")] {
            assert_eq!(base32(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn the_example_of_rfc_4226_is_truncated() {
        // RFC 4226 5.4.
        let tag = [
            0x1f, 0x86, 0x98, 0x69, 0x0e, 0x02, 0xca, 0x16, 0x61, 0x85, 0x50, 0xef, 0x7f, 0x19, 0xda, 0x8e, 0x94, 0x5b,
            0x55, 0x5a,
        ];
        assert_eq!(TotpCode::from_hmac(&tag).text(), "872921");
    }

    #[test]
    fn codes_are_read_as_people_type_them() {
        let code = RecoveryCode::new(&[0xa7; 32]);
        let text = code.text();
        assert_eq!(text.len(), 19);
        for typed in [text.clone(), text.to_lowercase(), text.replace('-', ""), text.replace('-', " ")] {
            assert_eq!(SecondFactorCode::parse(&typed), Some(SecondFactorCode::Recovery(code.clone())), "{typed}");
        }
        for typed in ["012345", " 012 345 ", "012-345"] {
            assert_eq!(SecondFactorCode::parse(typed), Some(SecondFactorCode::Totp(TotpCode(12_345))), "{typed}");
        }
        for invalid in ["", "01234", "0123456", "01234é", "ABCD-EFGH-IJKL-MNO1", &"0".repeat(100), &"é".repeat(40)] {
            assert_eq!(SecondFactorCode::parse(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_step_before_and_after_are_accepted() {
        let steps = |second| acceptable_steps(Timestamp::from_second(second).unwrap()).collect::<Vec<_>>();
        assert_eq!(steps(59), [0, 1, 2]);
        assert_eq!(steps(60), [1, 2, 3]);
        assert_eq!(steps(-1), [0, 1]);
    }

    #[test]
    fn the_uri_names_the_service_and_the_user() {
        assert_eq!(
            otpauth_uri("mail.example", "ada+x@example.com", b"foobar"),
            "otpauth://totp/mail.example:ada%2Bx%40example.com?secret=MZXW6YTBOI&issuer=mail.example&algorithm=SHA1\
             &digits=6&period=30"
        );
    }

    #[test]
    fn no_debug_form_shows_a_code() {
        let code = SecondFactorCode::parse("012345");
        assert!(!format!("{code:?} {:?}", RecoveryCode::new(&[1; 32])).contains("12345"));
    }
}
