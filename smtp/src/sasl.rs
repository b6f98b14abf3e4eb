//! AUTH PLAIN and AUTH LOGIN (RFC 4954, RFC 4616): parses base64 to a user name and a password.
//!
//! A [`SaslExchange`] consumes the client's lines one after another. The credentials are not checked here, but by the
//! handler of [`crate::handler::Hook::Authenticate`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::handler::SaslCredentials;
use crate::replies;

/// Longer user names and passwords are refused: no valid one has this length.
const TEXT_BYTES_MAX: usize = 1_024;

/// The state of an exchange.
#[derive(Debug)]
pub(crate) enum SaslExchange {
    /// AUTH PLAIN without an initial response.
    Plain,
    /// AUTH LOGIN, waiting for the user name.
    LoginUsername,
    /// AUTH LOGIN with this user name, waiting for the password.
    LoginPassword(String),
}

/// The result of a line.
#[derive(Debug)]
pub(crate) enum SaslProgress {
    /// Send this challenge and wait for a line.
    Challenge(&'static str, SaslExchange),
    Complete(SaslCredentials),
    /// The exchange failed; send this reply.
    Failed(&'static str),
}

/// Starts an exchange with the arguments of AUTH.
pub(crate) fn start_exchange(arguments: &[u8]) -> SaslProgress {
    let mut words = arguments.split(|b| *b == b' ').filter(|w| !w.is_empty());
    let Some(mechanism) = words.next() else { return SaslProgress::Failed(replies::ARGUMENT_MISSING) };
    let initial = words.next();
    if words.next().is_some() {
        return SaslProgress::Failed(replies::BAD_BASE64);
    }
    let (first, challenge) = if mechanism.eq_ignore_ascii_case(b"PLAIN") {
        (SaslExchange::Plain, replies::CHALLENGE_EMPTY)
    } else if mechanism.eq_ignore_ascii_case(b"LOGIN") {
        (SaslExchange::LoginUsername, replies::CHALLENGE_USERNAME)
    } else {
        return SaslProgress::Failed(replies::BAD_MECHANISM);
    };
    match initial {
        None => SaslProgress::Challenge(challenge, first),
        // RFC 4954 4: "=" is the empty initial response.
        Some(b"=") => first.step(b""),
        Some(b"*") => SaslProgress::Failed(replies::BAD_BASE64),
        Some(response) => first.step(response),
    }
}

impl SaslExchange {
    /// Processes the client's next line, without its line end.
    pub(crate) fn step(self, line: &[u8]) -> SaslProgress {
        // RFC 4954 4: "*" cancels.
        if line == b"*" {
            return SaslProgress::Failed(replies::AUTH_CANCELLED);
        }
        let Ok(bytes) = STANDARD.decode(line) else { return SaslProgress::Failed(replies::BAD_BASE64) };
        match self {
            Self::Plain => {
                parse_plain(&bytes).map_or(SaslProgress::Failed(replies::BAD_CREDENTIALS_FORM), SaslProgress::Complete)
            }
            Self::LoginUsername => match parse_text(&bytes) {
                Some(username) => SaslProgress::Challenge(replies::CHALLENGE_PASSWORD, Self::LoginPassword(username)),
                None => SaslProgress::Failed(replies::BAD_CREDENTIALS_FORM),
            },
            Self::LoginPassword(username) => match parse_text(&bytes) {
                Some(password) => SaslProgress::Complete(SaslCredentials { username, password }),
                None => SaslProgress::Failed(replies::BAD_CREDENTIALS_FORM),
            },
        }
    }
}

/// Parses `[authzid] NUL authcid NUL passwd` (RFC 4616 2). Proxy authorization is not supported: an authzid must equal
/// the authcid.
fn parse_plain(bytes: &[u8]) -> Option<SaslCredentials> {
    let mut parts = bytes.split(|b| *b == 0);
    let (authzid, authcid, password) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !(authzid.is_empty() || authzid == authcid) {
        return None;
    }
    Some(SaslCredentials { username: parse_text(authcid)?, password: parse_text(password)? })
}

fn parse_text(bytes: &[u8]) -> Option<String> {
    if bytes.len() > TEXT_BYTES_MAX || bytes.contains(&0) {
        return None;
    }
    String::from_utf8(bytes.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_parsed() {
        // NUL postrider NUL secret
        let SaslProgress::Complete(read) = start_exchange(b"plain AHBvc3RyaWRlcgBzZWNyZXQ=") else {
            panic!("not complete")
        };
        assert_eq!((read.username.as_str(), read.password.as_str()), ("postrider", "secret"));
        assert_eq!(format!("{read:?}"), "Credentials(postrider, hidden)");
    }

    #[test]
    fn login_is_parsed() {
        let SaslProgress::Challenge(_, exchange) = start_exchange(b"LOGIN cG9zdHJpZGVy") else {
            panic!("no challenge")
        };
        let SaslProgress::Complete(read) = exchange.step(b"c2VjcmV0") else { panic!("not complete") };
        assert_eq!((read.username.as_str(), read.password.as_str()), ("postrider", "secret"));
    }

    #[test]
    fn invalid_credentials_data_is_refused() {
        for line in ["", "CRAM-MD5", "PLAIN *", "PLAIN !!!", "PLAIN =", "PLAIN AAAAAA==", "PLAIN a b", "PLAIN eA=="] {
            assert!(matches!(start_exchange(line.as_bytes()), SaslProgress::Failed(_)), "{line}");
        }
        // An authzid that differs from the authcid.
        let other = STANDARD.encode(b"root\0postrider\0secret");
        assert!(matches!(SaslExchange::Plain.step(other.as_bytes()), SaslProgress::Failed(_)));
    }
}
