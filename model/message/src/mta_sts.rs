//! MTA-STS (RFC 8461): the TXT record that announces a policy, and the policy file.
//!
//! The parser is as strict as the RFC: unknown keys are ignored, and errors name the cause, because TLS reports
//! (RFC 8460) show them to the domain's postmaster.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::address::DomainName;
use crate::words;

/// RFC 8461 3.3: maximum size of a policy file.
pub const POLICY_BYTES_MAX: usize = 64 * 1024;
/// RFC 8461 3.2: about a year.
const MAX_AGE_S_MAX: u64 = 31_557_600;
/// RFC 8461 3.1: 1*32 letters and digits.
const ID_CHARS_MAX: usize = 32;
/// Maximum number of stored policy lines, and of `mx` patterns in TLS reports.
const REPORTED_MAX: usize = 100;

words! {
    /// Policy mode (RFC 8461 5).
    MtaStsMode {
        /// Deliver only to a matching host, by TLS, with a valid certificate.
        Enforce = "enforce",
        /// Deliver anyway, and report what would have failed.
        Testing = "testing",
        /// The domain has withdrawn its policy.
        None = "none",
    }
}

/// `mx` pattern: a host name, or a wildcard for all names one label below a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MtaStsMxPattern {
    name: DomainName,
    is_wildcard: bool,
}

impl MtaStsMxPattern {
    /// Returns whether the pattern matches a host (RFC 8461 4.1; a wildcard matches one label, RFC 6125 6.4.3).
    pub fn covers(&self, host: &DomainName) -> bool {
        match self.is_wildcard {
            true => host.as_str().split_once('.').is_some_and(|(_, parent)| parent == self.name.as_str()),
            false => *host == self.name,
        }
    }
}

impl TryFrom<String> for MtaStsMxPattern {
    type Error = MtaStsPolicyError;

    fn try_from(text: String) -> Result<Self, MtaStsPolicyError> {
        let (is_wildcard, name) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        match name.parse() {
            Ok(name) => Ok(Self { name, is_wildcard }),
            Err(_) => Err(MtaStsPolicyError::Mx(truncate(&text))),
        }
    }
}

impl From<MtaStsMxPattern> for String {
    fn from(pattern: MtaStsMxPattern) -> Self {
        let star = if pattern.is_wildcard { "*." } else { "" };
        format!("{star}{}", pattern.name)
    }
}

/// A parsed policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MtaStsPolicy {
    pub mode: MtaStsMode,
    /// Permitted mail hosts; empty only if the mode is [`MtaStsMode::None`]. Their number is bounded by
    /// [`POLICY_BYTES_MAX`] only.
    pub mx: Vec<MtaStsMxPattern>,
    /// Lifetime in seconds.
    pub max_age_s: u64,
}

/// Reason why a policy is invalid (RFC 8460 4.3: `sts-policy-invalid`).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MtaStsPolicyError {
    /// Too long, or not UTF-8.
    #[error("the policy is longer than {POLICY_BYTES_MAX} bytes or is not UTF-8")]
    Text,
    #[error("the line `{0}` has no `:`")]
    Line(String),
    /// `version` is missing or is not `STSv1`.
    #[error("the policy must contain `version: STSv1`")]
    Version,
    /// `mode` is missing or unknown.
    #[error("the policy must contain `mode: enforce`, `mode: testing` or `mode: none`")]
    Mode,
    /// `max_age` is missing or is not a number up to a year.
    #[error("the policy must contain `max_age:` with seconds, at most {MAX_AGE_S_MAX}")]
    MaxAge,
    /// No `mx` in a policy whose mode requires one.
    #[error("the policy has no `mx:`")]
    NoMx,
    /// An `mx` value is not a host name.
    #[error("`mx: {0}` is not a host name, with or without `*.` before it")]
    Mx(String),
}

fn truncate(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(60).collect()
}

impl MtaStsPolicy {
    /// Parses a policy (RFC 8461 3.2). If a key other than `mx` is repeated, the first value counts.
    pub fn parse(bytes: &[u8]) -> Result<Self, MtaStsPolicyError> {
        let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= POLICY_BYTES_MAX);
        let mut fields: Vec<(&str, &str)> = Vec::new();
        for line in text.ok_or(MtaStsPolicyError::Text)?.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (key, value) = line.split_once(':').ok_or_else(|| MtaStsPolicyError::Line(truncate(line)))?;
            fields.push((key.trim(), value.trim()));
        }
        let first = |wanted: &str| fields.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value);
        if first("version") != Some("STSv1") {
            return Err(MtaStsPolicyError::Version);
        }
        let mode = first("mode").and_then(MtaStsMode::from_word).ok_or(MtaStsPolicyError::Mode)?;
        let max_age_s = first("max_age").filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        let max_age_s = max_age_s.and_then(|text| text.parse().ok()).filter(|age| *age <= MAX_AGE_S_MAX);
        let max_age_s = max_age_s.ok_or(MtaStsPolicyError::MaxAge)?;
        let mx = fields.iter().filter(|(key, _)| *key == "mx");
        let mx: Vec<MtaStsMxPattern> =
            mx.map(|(_, value)| MtaStsMxPattern::try_from((*value).to_owned())).collect::<Result<_, _>>()?;
        if mx.is_empty() && mode != MtaStsMode::None {
            return Err(MtaStsPolicyError::NoMx);
        }
        Ok(Self { mode, mx, max_age_s })
    }

    /// Returns whether a host matches one of the `mx` patterns.
    pub fn covers(&self, host: &DomainName) -> bool {
        self.mx.iter().any(|pattern| pattern.covers(host))
    }
}

/// Formats the policy of a domain with one mail host. The lifetime is a week in mode `enforce`, otherwise a day.
pub fn format_policy(mode: MtaStsMode, mx: &DomainName) -> String {
    let max_age_s = if mode == MtaStsMode::Enforce { 604_800 } else { 86_400 };
    format!("version: STSv1\r\nmode: {mode}\r\nmx: {mx}\r\nmax_age: {max_age_s}\r\n")
}

/// A domain's cached policy. The cache protects against an attacker who blocks DNS or HTTPS (RFC 8461 10.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedMtaStsPolicy {
    /// The `id` of the TXT record that announced it.
    pub id: String,
    pub fetched_at: Timestamp,
    pub policy: MtaStsPolicy,
    /// The lines of the policy file, for reports (RFC 8460 4.4 `policy-string`).
    pub lines: Vec<String>,
}

impl CachedMtaStsPolicy {
    /// Creates the entry of a policy that was fetched at `now`.
    pub fn new(id: String, policy: MtaStsPolicy, text: &[u8], now: Timestamp) -> Self {
        let text = String::from_utf8_lossy(text);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty()).map(truncate);
        Self { id, fetched_at: now, policy, lines: lines.take(REPORTED_MAX).collect() }
    }

    /// The `mx` patterns as reports quote them (RFC 8460 4.4 `mx-host`).
    pub fn reported_mx(&self) -> Vec<String> {
        self.policy.mx.iter().take(REPORTED_MAX).cloned().map(String::from).collect()
    }

    /// Drops the patterns of a long policy that match none of these hosts, to save memory.
    pub fn retain_patterns_of<'a>(&mut self, hosts: impl Iterator<Item = &'a DomainName> + Clone) {
        if self.policy.mx.len() > REPORTED_MAX {
            self.policy.mx.retain(|pattern| hosts.clone().any(|host| pattern.covers(host)));
            self.policy.mx.shrink_to_fit();
        }
    }

    /// End of the policy's lifetime.
    pub fn expires_at(&self) -> Timestamp {
        let age = SignedDuration::from_secs(i64::try_from(self.policy.max_age_s).unwrap_or(i64::MAX));
        self.fetched_at.checked_add(age).unwrap_or(Timestamp::MAX)
    }
}

/// Returns the `id` announced at `_mta-sts.{domain}` (RFC 8461 3.1). Returns `None` if there is no record, if there are
/// several, or if the id is invalid.
pub fn policy_id(texts: &[String]) -> Option<String> {
    let mut records = texts.iter().filter(|text| is_policy_record(text));
    let (Some(text), None) = (records.next(), records.next()) else { return None };
    let id = text.split(';').skip(1).find_map(|field| {
        let (key, value) = field.split_once('=')?;
        (key.trim() == "id").then(|| value.trim().to_owned())
    })?;
    let is_valid = (1..=ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_valid.then_some(id)
}

fn is_policy_record(text: &str) -> bool {
    text.split(';').next().is_some_and(|version| version.trim_end() == "v=STSv1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<MtaStsPolicy, MtaStsPolicyError> {
        MtaStsPolicy::parse(text.as_bytes())
    }

    #[test]
    fn a_policy_is_parsed() {
        let text =
            "version: STSv1\r\nmode: enforce\r\nmx: mail.example.com\r\nmx: *.example.net\r\nmax_age: 604800\r\n";
        let policy = read(text).unwrap();
        assert_eq!((policy.mode, policy.max_age_s), (MtaStsMode::Enforce, 604_800));
        for (host, fits) in [
            ("mail.example.com", true),
            ("MAIL.example.com", true),
            ("a.mail.example.com", false),
            ("a.example.net", true),
            ("example.net", false),
            ("a.b.example.net", false),
        ] {
            assert_eq!(policy.covers(&host.parse().unwrap()), fits, "{host}");
        }
        assert_eq!(read("version: STSv1\nmode: none\nmax_age: 0").unwrap().mode, MtaStsMode::None);
        assert!(read("version:STSv1\nmode:testing\nmx:a.example\nmax_age:1\nfuture: x\nmode: enforce").is_ok());
    }

    #[test]
    fn a_written_policy_is_parsed() {
        let mx = "mx.example.net".parse().unwrap();
        for mode in [MtaStsMode::Enforce, MtaStsMode::Testing, MtaStsMode::None] {
            let policy = read(&format_policy(mode, &mx)).unwrap();
            assert!(policy.mode == mode && policy.covers(&mx));
        }
    }

    #[test]
    fn policy_errors_are_explained() {
        let good = [("version", "STSv1"), ("mode", "enforce"), ("mx", "a.example"), ("max_age", "60")];
        let broken = |key: &str, value: Option<&str>| {
            let lines = good.iter().filter_map(|(k, v)| match *k == key {
                true => value.map(|value| format!("{k}: {value}\n")),
                false => Some(format!("{k}: {v}\n")),
            });
            read(&lines.collect::<String>()).unwrap_err()
        };
        for value in [None, Some("STSv2"), Some("")] {
            assert_eq!(broken("version", value), MtaStsPolicyError::Version);
        }
        for value in [None, Some("Enforce"), Some("strict")] {
            assert_eq!(broken("mode", value), MtaStsPolicyError::Mode);
        }
        for value in [None, Some("-1"), Some("1d"), Some("99999999999999999999"), Some("31557601"), Some("+5")] {
            assert_eq!(broken("max_age", value), MtaStsPolicyError::MaxAge);
        }
        assert_eq!(broken("mx", None), MtaStsPolicyError::NoMx);
        for value in ["*", "*.", "a*.example", "192.0.2.1", "a b"] {
            assert!(matches!(broken("mx", Some(value)), MtaStsPolicyError::Mx(_)), "{value}");
        }
        assert_eq!(read("version STSv1"), Err(MtaStsPolicyError::Line("version STSv1".to_owned())));
        assert_eq!(read(""), Err(MtaStsPolicyError::Version));
        assert_eq!(MtaStsPolicy::parse(b"\xff"), Err(MtaStsPolicyError::Text));
        assert_eq!(MtaStsPolicy::parse(&vec![b'a'; POLICY_BYTES_MAX + 1]), Err(MtaStsPolicyError::Text));
    }

    #[test]
    fn all_hosts_of_a_long_policy_are_permitted() {
        let patterns: String = (0..150).map(|n| format!("mx: *.mx{n}.example\n")).collect();
        let text = format!("version: STSv1\nmode: enforce\nmax_age: 60\n{patterns}");
        let mut cached =
            CachedMtaStsPolicy::new("1".to_owned(), read(&text).unwrap(), text.as_bytes(), Timestamp::UNIX_EPOCH);
        let hosts: [DomainName; 2] = ["a.mx149.example", "a.elsewhere.example"].map(|host| host.parse().unwrap());
        assert_eq!(hosts.each_ref().map(|host| cached.policy.covers(host)), [true, false]);
        assert_eq!((cached.lines.len(), cached.reported_mx().len()), (REPORTED_MAX, REPORTED_MAX));
        cached.retain_patterns_of(hosts.iter());
        assert_eq!(hosts.each_ref().map(|host| cached.policy.covers(host)), [true, false]);
        assert_eq!(cached.policy.mx.len(), 1);
    }

    #[test]
    fn a_record_has_one_valid_id() {
        let id_of = |texts: &[&str]| policy_id(&texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        assert_eq!(id_of(&["v=STSv1; id=20160831085700Z;"]).as_deref(), Some("20160831085700Z"));
        assert_eq!(id_of(&["v=spf1 -all", "v=STSv1;id=1"]).as_deref(), Some("1"));
        for texts in [
            &[][..],
            &["v=STSv1; id=1", "v=STSv1; id=2"],
            &["v=STSv1"],
            &["v=STSv1; id="],
            &["v=STSv1; id=a-b"],
            &["v=STSv10; id=1"],
            &["id=1; v=STSv1"],
        ] {
            assert_eq!(id_of(texts), None, "{texts:?}");
        }
        let long = format!("v=STSv1; id={}", "a".repeat(33));
        assert_eq!(id_of(&[&long]), None);
    }

    #[test]
    fn a_policy_expires_after_its_max_age() {
        let text = b"version: STSv1\nmode: testing\nmx: *.example.net\nmax_age: 60\n";
        let fetched =
            CachedMtaStsPolicy::new("1".to_owned(), MtaStsPolicy::parse(text).unwrap(), text, Timestamp::UNIX_EPOCH);
        assert_eq!(fetched.lines.len(), 4);
        assert_eq!(fetched.expires_at().as_second(), 60);
        let json = serde_json::to_string(&fetched.policy).unwrap();
        assert_eq!(serde_json::from_str::<MtaStsPolicy>(&json).unwrap(), fetched.policy);
    }
}
