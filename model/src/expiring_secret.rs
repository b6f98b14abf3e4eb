//! Secrets that expire: OAuth's codes and tokens, and the tokens of sign-in links. A text has a prefix that names its
//! kind, its expiry and 32 random bytes. The store has the hash, at a key that begins with the expiry, so that expired
//! rows are one range.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;

use crate::credential::SecretHash;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    AccessToken,
    RefreshToken,
    AuthorizationCode,
    DeviceCode,
    /// In the path of a mailed link, or of the second step of a sign-in.
    SignInLink,
}

impl SecretKind {
    /// The prefix, which secret scanners recognise; a link's token has none.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::AccessToken => "rnl_at_",
            Self::RefreshToken => "rnl_rt_",
            Self::AuthorizationCode => "rnl_ac_",
            Self::DeviceCode => "rnl_dc_",
            Self::SignInLink => "",
        }
    }
}

/// A secret in plain text. Its Debug form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ExpiringSecret {
    pub kind: SecretKind,
    /// Expiry, to the microsecond.
    pub expires_at: Timestamp,
    secret: [u8; 32],
}

impl fmt::Debug for ExpiringSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExpiringSecret({:?}, hidden)", self.kind)
    }
}

impl ExpiringSecret {
    pub fn new(kind: SecretKind, expires_at: Timestamp, secret: [u8; 32]) -> Self {
        let micros = expires_at.as_microsecond();
        Self { kind, expires_at: Timestamp::from_microsecond(micros).unwrap_or(expires_at), secret }
    }

    /// Parses a secret of this kind; `None` if it is malformed.
    pub fn parse(kind: SecretKind, text: &str) -> Option<Self> {
        let bytes: [u8; 40] = URL_SAFE_NO_PAD.decode(text.strip_prefix(kind.prefix())?).ok()?.try_into().ok()?;
        let (time, secret) = bytes.split_first_chunk::<8>()?;
        let expires_at = Timestamp::from_microsecond(i64::from_be_bytes(*time)).ok()?;
        Some(Self { kind, expires_at, secret: secret.try_into().ok()? })
    }

    /// The secret in plain text.
    pub fn text(&self) -> String {
        let time = self.expires_at.as_microsecond().to_be_bytes();
        format!("{}{}", self.kind.prefix(), URL_SAFE_NO_PAD.encode([&time[..], &self.secret].concat()))
    }

    /// The hash to store.
    pub fn hash(&self) -> SecretHash {
        SecretHash::from_bytes(&self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_round_trip_within_their_kind() {
        let secret = ExpiringSecret::new(SecretKind::AccessToken, Timestamp::from_second(7).unwrap(), [5; 32]);
        let text = secret.text();
        assert_eq!(ExpiringSecret::parse(SecretKind::AccessToken, &text), Some(secret.clone()));
        assert_eq!(ExpiringSecret::parse(SecretKind::RefreshToken, &text), None);
        for bad in ["", "rnl_at_", &text[1..], &format!("{text}A"), &text.replace("rnl_at_", "rnl_rt_")] {
            assert_eq!(ExpiringSecret::parse(SecretKind::AccessToken, bad), None, "{bad}");
        }
        assert!(!format!("{secret:?}").contains(&text[8..20]));
    }

    #[test]
    fn links_round_trip() {
        let link = ExpiringSecret::new(SecretKind::SignInLink, Timestamp::from_second(7).unwrap(), [5; 32]);
        assert_eq!(ExpiringSecret::parse(SecretKind::SignInLink, &link.text()), Some(link));
    }
}
