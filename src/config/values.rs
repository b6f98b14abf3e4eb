//! Types of configuration values: their syntax and error texts.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use message::address::DomainName;
use queue::delivery::client::smtp::TlsSecurityLevel;
use queue::routing::smarthosts::SmarthostEndpoint;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, de};

/// Storage engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoreEngine {
    /// Embedded: a commit log in front of redb.
    #[default]
    Redb,
    /// A PostgreSQL database shared by any number of nodes.
    Postgres,
}

/// Whether TLSA records of mail hosts are applied (RFC 7672).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DaneMode {
    /// Once the name server has been seen to validate DNSSEC.
    #[default]
    Auto,
    /// Always: without a validating name server, no mail is sent.
    On,
    Off,
}

/// A switch that is on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnOff {
    #[default]
    On,
    Off,
}

/// A smarthost's address: `host:port` or `address:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmarthostAddress(pub SmarthostEndpoint);

impl SmarthostAddress {
    /// Returns why its certificate cannot be verified, if `tls` requires that.
    pub(super) fn unverifiable_reason(&self, tls: TlsSecurityLevel) -> Option<String> {
        match (&self.0, tls) {
            (SmarthostEndpoint::Address(address), TlsSecurityLevel::Verified) => Some(format!(
                "`tls = \"verified\"` requires a certificate for the host's name, but {address} is an IP address"
            )),
            _ => None,
        }
    }
}

impl FromStr for SmarthostAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is not host:port (example: \"relay.example.net:587\")");
        let (host, port) = text.rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().map_err(|_| error())?;
        if port == 0 {
            return Err(format!("port 0 in `{text}` is invalid (example: \"relay.example.net:587\")"));
        }
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self(SmarthostEndpoint::Address(address)));
        }
        Ok(Self(SmarthostEndpoint::Host(host.parse::<DomainName>().map_err(|_| error())?, port)))
    }
}

impl<'de> Deserialize<'de> for SmarthostAddress {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        String::deserialize(input)?.parse().map_err(D::Error::custom)
    }
}

/// A secret. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct SecretString(pub String);

impl FromStr for SecretString {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

model::redacted!(SecretString, "Hidden");

/// Deserializes one string or a list of strings, and parses each.
pub(super) fn one_or_many<'de, D, T>(input: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: fmt::Display>,
{
    struct OneOrMany<T>(std::marker::PhantomData<T>);
    impl<'de, T: FromStr<Err: fmt::Display>> de::Visitor<'de> for OneOrMany<T> {
        type Value = Vec<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string in quotation marks, or a list of strings")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            parse_each(&[text.to_owned()], parse_named)
        }
        fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut texts = Vec::new();
            while let Some(text) = list.next_element::<String>()? {
                texts.push(text);
            }
            parse_each(&texts, parse_named)
        }
    }
    input.deserialize_any(OneOrMany(std::marker::PhantomData))
}

/// Parses a text. The error begins with it.
fn parse_named<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| {
        let error = error.to_string();
        if error.contains(&format!("`{text}`")) { error } else { format!("`{text}`: {error}") }
    })
}

/// Parses every text of a list. The error names all invalid ones.
fn parse_each<T, E: de::Error>(texts: &[String], parse: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, E> {
    let (parsed, errors): (Vec<_>, Vec<_>) = texts.iter().map(|text| parse(text)).partition(Result::is_ok);
    let errors: Vec<_> = errors.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(parsed.into_iter().flatten().collect()) } else { Err(E::custom(errors.join("; "))) }
}

pub(crate) fn read_duration(text: &str) -> Result<Duration, String> {
    let error = || format!("`{text}` is not a duration (examples: \"30s\", \"5m\", \"4h\", \"30d\")");
    // jiff does not parse days without a calendar; here a day is 24 hours.
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        return Ok(Duration::from_secs(u64::from(days) * 24 * 3600));
    }
    let signed: SignedDuration = text.parse().map_err(|_| error())?;
    Duration::try_from(signed).map_err(|_| error())
}

/// Deserializes a duration such as `"5m"`.
pub(super) fn duration<'de, D: Deserializer<'de>>(input: D) -> Result<Duration, D::Error> {
    read_duration(&String::deserialize(input)?).map_err(D::Error::custom)
}

/// Deserializes a duration of an optional key.
pub(super) fn duration_option<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Duration>, D::Error> {
    duration(input).map(Some)
}

/// Deserializes a non-empty list such as `["1m", "5m"]`.
pub(super) fn durations<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Duration>, D::Error> {
    let texts = one_or_many::<D, String>(input)?;
    if texts.is_empty() {
        return Err(D::Error::custom("at least one delay is required"));
    }
    parse_each(&texts, read_duration)
}

/// Values with error texts of their own.
pub(super) mod parsed {
    use jiff::civil::Date;
    use message::address::Address;

    use super::{Deserialize, Deserializer, DomainName, FromStr, SocketAddr, fmt};

    fn name(text: &str) -> Result<DomainName, String> {
        text.parse().map_err(|_| format!("`{text}` is not a host name (example: \"mx1.example.net\")"))
    }

    pub(in crate::config) fn host_name<'de, D: Deserializer<'de>>(input: D) -> Result<DomainName, D::Error> {
        name(&String::deserialize(input)?).map_err(serde::de::Error::custom)
    }

    pub(in crate::config) fn host_name_option<'de, D: Deserializer<'de>>(
        input: D,
    ) -> Result<Option<DomainName>, D::Error> {
        host_name(input).map(Some)
    }

    pub(in crate::config) fn host_names<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<DomainName>, D::Error> {
        super::parse_each(&super::one_or_many::<D, String>(input)?, name)
    }

    pub(in crate::config) fn address_option<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Address>, D::Error> {
        let text = String::deserialize(input)?;
        text.parse().map(Some).map_err(|error| {
            let example = "postmaster@example.net";
            serde::de::Error::custom(format!("`{text}` is not an email address: {error} (example: {example:?})"))
        })
    }

    /// Deserializes a type whose errors name the value.
    pub(in crate::config) fn text_option<'de, D, T>(input: D) -> Result<Option<T>, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: fmt::Display>,
    {
        String::deserialize(input)?.parse().map(Some).map_err(serde::de::Error::custom)
    }

    /// Deserializes a day, as a string or a TOML date.
    pub(in crate::config) fn day_option<'de, D: Deserializer<'de>>(input: D) -> Result<Option<Date>, D::Error> {
        let text = match toml::Value::deserialize(input)? {
            toml::Value::String(text) => text,
            other => other.to_string(),
        };
        let not_a_day = |_| serde::de::Error::custom(format!("`{text}` is not a date (example: 2026-01-31)"));
        text.parse().map(Some).map_err(not_a_day)
    }

    pub(in crate::config) fn servers<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<SocketAddr>, D::Error> {
        super::parse_each(&super::one_or_many::<D, String>(input)?, |text| {
            let error = || format!("`{text}` is not an address (example: \"127.0.0.1:53\")");
            dns::resolver::parse_server(text).ok_or_else(error)
        })
    }
}
