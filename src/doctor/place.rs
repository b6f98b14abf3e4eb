//! What the checks look at and look with: the configuration, the resolver, the clock, our addresses, and
//! whom in the world to ask.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use dns::lookup::{Resolver, ResolverSettings, ResolverSetupError};
use mail::address::DomainName;
use queue::clock::Clock;

use super::addresses::{self, SendingAddresses};
use crate::config::Config;

/// How long one look-up may take: who waits longer for each name delivers no mail either.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(6);
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// `host:port`, `address:port`, or either alone where a port is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeTarget {
    /// A name or an address.
    pub host: ProbeHost,
    /// Unless it is the usual one.
    pub port: Option<u16>,
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeHost {
    /// To be looked up.
    Name(DomainName),
    /// As it is.
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
        let wrong = || format!("`{text}` is not HOST or HOST:PORT (say, \"mx.example.net:25\")");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        Ok(Self { host: ProbeHost::Name(host.parse().map_err(|_| wrong())?), port })
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

/// What the operator may say on the command line.
#[derive(Debug, Clone, Default)]
pub struct DoctorOptions {
    /// A mail host to try port 25 out with, instead of the well-known ones.
    pub out: Option<ProbeTarget>,
    /// A time server, instead of the well-known one.
    pub ntp: Option<ProbeTarget>,
    /// Our public addresses, where a NAT hides them.
    pub addresses: Vec<IpAddr>,
}

/// Everything that a check may use.
pub struct CheckContext {
    /// The configuration.
    pub config: Config,
    /// Asks as the server does.
    pub resolver: Resolver,
    /// What this machine takes the time to be.
    pub clock: Clock,
    /// What the operator said.
    pub options: DoctorOptions,
    /// The addresses of our host name, or why there is no answer.
    pub hostname_addresses: Result<Vec<IpAddr>, String>,
    /// Which of those, and of the sources, an interface here has.
    pub local_addresses: BTreeSet<IpAddr>,
    /// Where mail leaves from.
    pub sources: SendingAddresses,
}

impl CheckContext {
    /// Looks around: our host name is looked up, for a NAT is seen through by it.
    ///
    /// # Errors
    /// [`SetupError`] when there is no resolver to ask.
    pub async fn gather(config: Config, options: DoctorOptions, clock: Clock) -> Result<Self, ResolverSetupError> {
        let resolver = Resolver::new(&ResolverSettings {
            servers: config.dns.servers.clone(),
            try_timeout: TRY_TIMEOUT,
            retries: 1,
            deadline: LOOKUP_DEADLINE,
            ..ResolverSettings::default()
        })?;
        let forward = lookup_addresses(&resolver, &config.hostname).await;
        let local = addresses::local_source_addresses(&config);
        let known = forward.as_deref().unwrap_or_default();
        let here = known.iter().chain(&local).copied().filter(|address| addresses::has_interface(*address)).collect();
        let sources = SendingAddresses::new(&local, &options.addresses, known);
        Ok(Self { config, resolver, clock, options, hostname_addresses: forward, local_addresses: here, sources })
    }

    /// The addresses of a host, or why there is no answer.
    ///
    /// # Errors
    /// A sentence.
    pub async fn addresses(&self, host: &ProbeHost) -> Result<Vec<IpAddr>, String> {
        match host {
            ProbeHost::Address(address) => Ok(vec![*address]),
            ProbeHost::Name(name) => lookup_addresses(&self.resolver, name).await,
        }
    }

    /// What we say in EHLO, coming from a public address.
    #[must_use]
    pub fn ehlo_name_for(&self, public: IpAddr) -> &DomainName {
        let local = self.sources.0.iter().find(|source| source.public == Some(public)).map(|s| s.local);
        let named = self.config.delivery.all_source_addresses();
        let pool = named.into_iter().find(|(address, _)| Some(*address) == local);
        pool.and_then(|(_, name)| name).unwrap_or(&self.config.hostname)
    }

    /// Whether the mail goes out by somebody else's host.
    #[must_use]
    pub fn uses_smarthost(&self) -> bool {
        self.config.delivery.default_smarthost().is_some()
    }

    /// Whether an address leads to this machine: it has it, or it is one that a NAT makes ours.
    #[must_use]
    pub fn is_ours(&self, address: IpAddr) -> bool {
        self.local_addresses.contains(&address)
            || self.sources.public().contains(&address)
            || self.options.addresses.contains(&address)
            || addresses::has_interface(address) && !addresses::is_private(address)
    }
}

async fn lookup_addresses(resolver: &Resolver, name: &DomainName) -> Result<Vec<IpAddr>, String> {
    resolver.addresses(name).await.map(|answer| answer.data).map_err(|error| error.to_string())
}

/// Things as they are told: `a`, `a and b`, `a, b and c`; `nothing` when there are none.
pub(super) fn join_words<T: fmt::Display>(things: &[T]) -> String {
    let texts: Vec<String> = things.iter().map(ToString::to_string).collect();
    match texts.split_last() {
        None => "nothing".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, before)) => format!("{} and {last}", before.join(", ")),
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
    fn lists_are_told() {
        assert_eq!(join_words::<u8>(&[]), "nothing");
        assert_eq!(join_words(&[1]), "1");
        assert_eq!(join_words(&[1, 2, 3]), "1, 2 and 3");
    }
}
