//! Smarthosts: relays of the operator's choice that take mail in the recipients' own hosts' stead (RFC 5598 4.3.1).
//!
//! Each has a name, by which the configuration says whose mail goes there, and the operator sends mail there while the
//! server runs. One takes a domain's mail always, or only where the domain's own hosts cannot be reached.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use mail::address::DomainName;
use mail::given_name::SmarthostName;

use crate::courier::smtp::{SmarthostCredentials, TlsSecurityLevel};
use crate::plan::{MailRoute, NextHop};

/// Where a smarthost is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmarthostEndpoint {
    /// An address.
    Address(SocketAddr),
    /// A name and a port.
    Host(DomainName, u16),
}

impl fmt::Display for SmarthostEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::Host(host, port) => write!(f, "{host}:{port}"),
        }
    }
}

/// A relay of the operator's choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smarthost {
    /// What the operator calls it.
    pub name: SmarthostName,
    /// Its hosts, in the order in which they are tried.
    pub endpoints: Vec<SmarthostEndpoint>,
    /// Who we are there.
    pub credentials: Option<SmarthostCredentials>,
    /// What is asked of TLS there; none is: what is asked of all hosts.
    pub tls: Option<TlsSecurityLevel>,
}

impl Smarthost {
    /// The name of the site that it is.
    pub(crate) fn ready_queue_name(&self) -> String {
        let at: Vec<String> = self.endpoints.iter().map(ToString::to_string).collect();
        format!("smarthost {} ({})", self.name, at.join(", "))
    }
}

/// When a smarthost takes the mail of its domains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SmarthostUse {
    /// Always.
    #[default]
    Always,
    /// Where none of the domain's own hosts can be reached.
    FailOver,
}

/// Of which recipients' domains.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DomainScope {
    /// Of this one.
    Domain(DomainName),
    /// Of those below this one.
    Below(DomainName),
    /// Of all.
    All,
}

impl fmt::Display for DomainScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain(name) => write!(f, "{name}"),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::All => f.write_str("*"),
        }
    }
}

/// Which smarthost takes whose mail.
#[derive(Debug, Clone, Default)]
pub struct Smarthosts {
    named: HashMap<SmarthostName, Arc<MailRoute>>,
    takes: HashMap<(SmarthostUse, DomainScope), SmarthostName>,
}

impl Smarthosts {
    /// Those of the configuration; of two for the same domains the first counts.
    #[must_use]
    pub fn new(all: Vec<(Smarthost, SmarthostUse, Vec<DomainScope>)>) -> Self {
        let mut smarthosts = Self::default();
        for (smarthost, when, whose) in all {
            for whose in whose {
                let name = smarthost.name.clone();
                smarthosts.takes.entry((when, whose)).or_insert(name);
            }
            let name = smarthost.name.clone();
            let route = MailRoute::from(NextHop::Smarthost(Arc::new(smarthost)));
            smarthosts.named.entry(name).or_insert_with(|| Arc::new(route));
        }
        smarthosts
    }

    /// The way to the one of this name.
    #[must_use]
    pub fn named(&self, name: &SmarthostName) -> Option<&Arc<MailRoute>> {
        self.named.get(name)
    }

    /// The way to the one that takes a domain's mail.
    #[must_use]
    pub fn for_domain(&self, domain: &DomainName, when: SmarthostUse) -> Option<&Arc<MailRoute>> {
        if self.takes.is_empty() {
            return None;
        }
        let find = |whose| self.takes.get(&(when, whose));
        let mut above = domain.parent();
        let mut found = find(DomainScope::Domain(domain.clone()));
        while let (None, Some(parent)) = (found, above) {
            above = parent.parent();
            found = find(DomainScope::Below(parent));
        }
        self.named(found.or_else(|| find(DomainScope::All))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> DomainName {
        text.parse().unwrap()
    }

    #[test]
    fn the_nearest_counts() {
        let smarthost = |of: &str| Smarthost {
            name: of.parse().unwrap(),
            endpoints: vec![SmarthostEndpoint::Host(name("relay.example"), 587)],
            credentials: None,
            tls: None,
        };
        let below = |of: &str| DomainScope::Below(name(of));
        let all = Smarthosts::new(vec![
            (smarthost("all"), SmarthostUse::Always, vec![DomainScope::All]),
            (smarthost("one"), SmarthostUse::Always, vec![DomainScope::Domain(name("a.example"))]),
            (smarthost("below"), SmarthostUse::Always, vec![below("example"), below("a.example")]),
            (smarthost("late"), SmarthostUse::FailOver, vec![below("example")]),
            (smarthost("unused"), SmarthostUse::Always, Vec::new()),
        ]);
        let of = |domain, when| all.for_domain(&name(domain), when).map(|route| route.queue_name.as_str());
        let site = |of| Some(all.named(&SmarthostName::try_from(String::from(of)).unwrap())?.queue_name.as_str());
        assert_eq!(of("a.example", SmarthostUse::Always), site("one"));
        assert_eq!(of("b.a.example", SmarthostUse::Always), site("below"));
        assert_eq!(of("example", SmarthostUse::Always), site("all"));
        assert_eq!(of("a.test", SmarthostUse::Always), site("all"));
        assert_eq!(of("a.example", SmarthostUse::FailOver), site("late"));
        assert_eq!(of("a.test", SmarthostUse::FailOver), None);
        assert_eq!(site("unused"), Some("smarthost unused (relay.example:587)"));
    }
}
