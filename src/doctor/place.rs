//! What the checks look at and look with: the configuration, the resolver, the clock, our addresses, and
//! whom in the world to ask.

use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use dns::lookup::{Resolver, Settings, SetupError};
use mail::address::Name;
use queue::clock::Clock;

use super::addresses::{self, Sources};
use crate::config::Config;

/// How long one look-up may take: who waits longer for each name delivers no mail either.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(6);
const TRY_TIMEOUT: Duration = Duration::from_secs(2);

/// `host:port`, `address:port`, or either alone where a port is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// A name or an address.
    pub host: Host,
    /// Unless it is the usual one.
    pub port: Option<u16>,
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// To be looked up.
    Named(Name),
    /// As it is.
    At(IpAddr),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { host: Host::At(address.ip()), port: Some(address.port()) });
        }
        if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
            return Ok(Self { host: Host::At(address), port: None });
        }
        let wrong = || format!("`{text}` is not HOST or HOST:PORT (say, \"mx.example.net:25\")");
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port.parse().map_err(|_| wrong())?)),
            None => (text, None),
        };
        Ok(Self { host: Host::Named(host.parse().map_err(|_| wrong())?), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => name.fmt(f),
            Self::At(address) => address.fmt(f),
        }
    }
}

/// What the operator may say on the command line.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// A mail host to try port 25 out with, instead of the well-known ones.
    pub out: Option<Target>,
    /// A time server, instead of the well-known one.
    pub ntp: Option<Target>,
    /// Our public addresses, where a NAT hides them.
    pub addresses: Vec<IpAddr>,
}

/// Everything that a check may use.
pub struct Place {
    /// The configuration.
    pub config: Config,
    /// Asks as the server does.
    pub resolver: Resolver,
    /// What this machine takes the time to be.
    pub clock: Clock,
    /// What the operator said.
    pub options: Options,
    /// The addresses of our host name, or why there is no answer.
    pub forward: Result<Vec<IpAddr>, String>,
    /// Which of those, and of the sources, an interface here has.
    pub here: BTreeSet<IpAddr>,
    /// Where mail leaves from.
    pub sources: Sources,
}

impl Place {
    /// Looks around: our host name is looked up, for a NAT is seen through by it.
    ///
    /// # Errors
    /// [`SetupError`] when there is no resolver to ask.
    pub async fn look(config: Config, options: Options, clock: Clock) -> Result<Self, SetupError> {
        let resolver = Resolver::new(&Settings {
            servers: config.dns.servers.clone(),
            try_timeout: TRY_TIMEOUT,
            retries: 1,
            deadline: LOOKUP_DEADLINE,
            ..Settings::default()
        })?;
        let forward = addresses_of(&resolver, &config.hostname).await;
        let local = addresses::local(&config);
        let known = forward.as_deref().unwrap_or_default();
        let here =
            known.iter().chain(&local).copied().filter(|address| addresses::is_here(*address)).collect();
        let sources = Sources::new(&local, &options.addresses, known);
        Ok(Self { config, resolver, clock, options, forward, here, sources })
    }

    /// The addresses of a host, or why there is no answer.
    ///
    /// # Errors
    /// A sentence.
    pub async fn addresses(&self, host: &Host) -> Result<Vec<IpAddr>, String> {
        match host {
            Host::At(address) => Ok(vec![*address]),
            Host::Named(name) => addresses_of(&self.resolver, name).await,
        }
    }

    /// What we say in EHLO, coming from a public address.
    #[must_use]
    pub fn said_from(&self, public: IpAddr) -> &Name {
        let local = self.sources.0.iter().find(|source| source.public == Some(public)).map(|s| s.local);
        let named = self.config.delivery.all_source_addresses();
        let pool = named.into_iter().find(|(address, _)| Some(*address) == local);
        pool.and_then(|(_, name)| name).unwrap_or(&self.config.hostname)
    }

    /// Whether the mail goes out by somebody else's host.
    #[must_use]
    pub fn by_smarthost(&self) -> bool {
        self.config.delivery.smarthost_of_all().is_some()
    }

    /// Whether an address leads to this machine: it has it, or it is one that a NAT makes ours.
    #[must_use]
    pub fn is_ours(&self, address: IpAddr) -> bool {
        self.here.contains(&address)
            || self.sources.public().contains(&address)
            || self.options.addresses.contains(&address)
            || addresses::is_here(address) && !addresses::is_private(address)
    }
}

async fn addresses_of(resolver: &Resolver, name: &Name) -> Result<Vec<IpAddr>, String> {
    resolver.addresses(name).await.map(|answer| answer.data).map_err(|error| error.to_string())
}

/// Things as they are told: `a`, `a and b`, `a, b and c`; `nothing` when there are none.
pub(super) fn told<T: fmt::Display>(things: &[T]) -> String {
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
        let read = |text: &str| text.parse::<Target>().map(|target| (target.host.to_string(), target.port));
        assert_eq!(read("mx.example.net:2525"), Ok(("mx.example.net".to_owned(), Some(2525))));
        assert_eq!(read("mx.example.net"), Ok(("mx.example.net".to_owned(), None)));
        assert_eq!(read("[2001:db8::1]:25"), Ok(("2001:db8::1".to_owned(), Some(25))));
        assert_eq!(read("2001:db8::1"), Ok(("2001:db8::1".to_owned(), None)));
        assert_eq!(read("127.0.0.1"), Ok(("127.0.0.1".to_owned(), None)));
        assert!(read("x y").is_err() && read("mx.example.net:many").is_err() && read("").is_err());
    }

    #[test]
    fn lists_are_told() {
        assert_eq!(told::<u8>(&[]), "nothing");
        assert_eq!(told(&[1]), "1");
        assert_eq!(told(&[1, 2, 3]), "1, 2 and 3");
    }
}
