//! Input of the checks: configuration, resolver, clock, source addresses, and the hosts to probe.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use dns::resolver::{Resolver, ResolverSettings, ResolverSetupError};
use message::address::DomainName;
use net::clock::Clock;

use super::addresses::{self, SendingAddresses};
use crate::config::Config;

/// Timeout of a DNS lookup. Slower resolvers are unsuitable for delivery too.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(6);
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// A host to probe: `host:port`, `address:port`, or the host or address alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    pub host: ProbeHost,
    /// None: the default port.
    pub port: Option<u16>,
}

/// A host name or an IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeHost {
    Name(DomainName),
    Address(IpAddr),
}

impl FromStr for ProbeTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: ProbeHost::Address(address.ip()), port: Some(address.port()) });
        }
        if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(Self { host: ProbeHost::Address(address), port: None });
        }
        let error = || format!("`{text}` is not HOST or HOST:PORT (example: \"mx.example.net:25\")");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| error())?)),
            None => (text, None),
        };
        Ok(Self { host: ProbeHost::Name(host.parse().map_err(|_| error())?), port })
    }
}

impl fmt::Display for ProbeHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

/// Options of the command line.
#[derive(Debug, Clone, Default)]
pub struct DoctorOptions {
    /// Mail host for the test of outgoing port 25, in place of the default ones.
    pub out: Option<ProbeTarget>,
    /// Time server, in place of the default one.
    pub ntp: Option<ProbeTarget>,
    /// Public addresses of this machine behind NAT.
    pub addresses: Vec<IpAddr>,
}

/// Input that all checks share.
pub struct CheckContext {
    pub config: Config,
    /// Resolver with the server's settings.
    pub resolver: Resolver,
    /// Clock of this machine.
    pub clock: Clock,
    pub options: DoctorOptions,
    /// Addresses of the host name, or the error of the lookup.
    pub hostname_addresses: Result<Vec<IpAddr>, String>,
    /// Those of `hostname_addresses` and of the source addresses that an interface of this machine has.
    pub local_addresses: BTreeSet<IpAddr>,
    /// Source addresses of outgoing mail.
    pub sources: SendingAddresses,
}

impl CheckContext {
    /// Collects the input. Resolves the host name, whose addresses reveal the public address behind NAT.
    pub async fn build(config: Config, options: DoctorOptions, clock: Clock) -> Result<Self, ResolverSetupError> {
        let resolver = Resolver::new(&ResolverSettings {
            servers: config.dns.servers.clone(),
            try_timeout: TRY_TIMEOUT,
            retries: 1,
            deadline: LOOKUP_DEADLINE,
            ..ResolverSettings::default()
        })?;
        let hostname_addresses = lookup_addresses(&resolver, &config.hostname).await;
        let local = addresses::local_source_addresses(&config);
        let known = hostname_addresses.as_deref().unwrap_or_default();
        let local_addresses =
            known.iter().chain(&local).copied().filter(|address| addresses::has_interface(*address)).collect();
        let sources = SendingAddresses::new(&local, &options.addresses, known);
        Ok(Self { config, resolver, clock, options, hostname_addresses, local_addresses, sources })
    }

    /// Resolves a host.
    pub async fn addresses(&self, host: &ProbeHost) -> Result<Vec<IpAddr>, String> {
        match host {
            ProbeHost::Address(address) => Ok(vec![*address]),
            ProbeHost::Name(name) => lookup_addresses(&self.resolver, name).await,
        }
    }

    /// EHLO name used with a public source address.
    pub fn ehlo_name_for(&self, public: IpAddr) -> &DomainName {
        let local = self.sources.0.iter().find(|source| source.public == Some(public)).map(|s| s.local);
        let source_addresses = self.config.delivery.all_source_addresses();
        let pool = source_addresses.into_iter().find(|(address, _)| Some(*address) == local);
        pool.and_then(|(_, name)| name).unwrap_or(&self.config.hostname)
    }

    /// Returns whether all other mail is sent through a smarthost.
    pub fn uses_smarthost(&self) -> bool {
        self.config.delivery.default_smarthost().is_some()
    }

    /// Returns whether an address belongs to this machine: an interface has it, or NAT translates it.
    pub fn is_own_address(&self, address: IpAddr) -> bool {
        self.local_addresses.contains(&address)
            || self.sources.public().contains(&address)
            || self.options.addresses.contains(&address)
            || addresses::has_interface(address) && !addresses::is_private(address)
    }
}

async fn lookup_addresses(resolver: &Resolver, name: &DomainName) -> Result<Vec<IpAddr>, String> {
    resolver.addresses(name).await.map(|answer| answer.data).map_err(|error| error.to_string())
}

/// Joins values: `a`, `a and b`, `a, b and c`; `nothing` if there are none.
pub(super) fn join_words<T: fmt::Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_names_or_addresses_with_or_without_a_port() {
        let read = |text: &str| text.parse::<ProbeTarget>().map(|target| (target.host.to_string(), target.port));
        assert_eq!(read("mx.example.net:2525"), Ok(("mx.example.net".to_owned(), Some(2525))));
        assert_eq!(read("mx.example.net"), Ok(("mx.example.net".to_owned(), None)));
        assert_eq!(read("[2001:db8::1]:25"), Ok(("2001:db8::1".to_owned(), Some(25))));
        assert_eq!(read("2001:db8::1"), Ok(("2001:db8::1".to_owned(), None)));
        assert_eq!(read("127.0.0.1"), Ok(("127.0.0.1".to_owned(), None)));
        assert!(read("x y").is_err() && read("mx.example.net:many").is_err() && read("").is_err());
    }

    #[test]
    fn words_are_joined() {
        assert_eq!(join_words::<u8>(&[]), "nothing");
        assert_eq!(join_words(&[1]), "1");
        assert_eq!(join_words(&[1, 2, 3]), "1, 2 and 3");
    }
}
