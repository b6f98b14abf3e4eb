//! Smarthosts: relays of the operator that take mail instead of the recipients' own hosts (RFC 5598 4.3.1).
//!
//! Each has a name, used by the configuration to assign domains and by the operator to reroute mail at runtime. A
//! smarthost takes a domain's mail always, or only if the domain's own hosts are unreachable.

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use message::address::DomainName;
use model::slug::SmarthostName;
use serde::Deserialize;

use crate::delivery::client::smtp::{SmarthostCredentials, TlsSecurityLevel};
use crate::routing::{MailRoute, NextHop};

/// Host of a smarthost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SmarthostEndpoint {
    /// IP address and port.
    Address(SocketAddr),
    /// Host name and port.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Smarthost {
    /// Name in the configuration.
    pub name: SmarthostName,
    /// Hosts in the order in which they are tried.
    pub endpoints: Vec<SmarthostEndpoint>,
    /// Login at the smarthost.
    pub credentials: Option<SmarthostCredentials>,
    /// TLS level for this smarthost; `None`: the configured default for all hosts.
    pub tls: Option<TlsSecurityLevel>,
}

impl Smarthost {
    /// Name of the smarthost's ready queue.
    pub(crate) fn ready_queue_name(&self) -> String {
        let at: Vec<String> = self.endpoints.iter().map(ToString::to_string).collect();
        format!("smarthost {} ({})", self.name, at.join(", "))
    }
}

/// Condition under which a smarthost takes its domains' mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmarthostUse {
    #[default]
    Always,
    /// Only if none of the domain's own hosts can be reached.
    FailOver,
}

/// Recipient domains that a smarthost serves.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DomainScope {
    /// This domain.
    Domain(DomainName),
    /// All subdomains of this domain.
    Below(DomainName),
    /// All domains.
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

/// Assigns recipient domains to smarthosts.
#[derive(Debug, Clone, Default)]
pub struct Smarthosts {
    named: HashMap<SmarthostName, Arc<MailRoute>>,
    by_scope: HashMap<(SmarthostUse, DomainScope), SmarthostName>,
}

impl Smarthosts {
    /// Creates the configured smarthosts. If two serve the same domains, the first one is used.
    pub fn new(all: Vec<(Smarthost, SmarthostUse, Vec<DomainScope>)>) -> Self {
        let mut smarthosts = Self::default();
        for (smarthost, usage, scopes) in all {
            for scope in scopes {
                let name = smarthost.name.clone();
                smarthosts.by_scope.entry((usage, scope)).or_insert(name);
            }
            let name = smarthost.name.clone();
            let route = MailRoute::from(NextHop::Smarthost(Arc::new(smarthost)));
            smarthosts.named.entry(name).or_insert_with(|| Arc::new(route));
        }
        smarthosts
    }

    /// Route to the smarthost of this name.
    pub fn named(&self, name: &SmarthostName) -> Option<&Arc<MailRoute>> {
        self.named.get(name)
    }

    /// Route to the smarthost that serves a domain; the most specific scope is used.
    pub fn for_domain(&self, domain: &DomainName, usage: SmarthostUse) -> Option<&Arc<MailRoute>> {
        if self.by_scope.is_empty() {
            return None;
        }
        let find = |scope| self.by_scope.get(&(usage, scope));
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
    fn the_most_specific_scope_is_used() {
        let smarthost = |smarthost_name: &str| Smarthost {
            name: smarthost_name.parse().unwrap(),
            endpoints: vec![SmarthostEndpoint::Host(name("relay.example"), 587)],
            credentials: None,
            tls: None,
        };
        let below = |domain: &str| DomainScope::Below(name(domain));
        let all = Smarthosts::new(vec![
            (smarthost("all"), SmarthostUse::Always, vec![DomainScope::All]),
            (smarthost("one"), SmarthostUse::Always, vec![DomainScope::Domain(name("a.example"))]),
            (smarthost("below"), SmarthostUse::Always, vec![below("example"), below("a.example")]),
            (smarthost("late"), SmarthostUse::FailOver, vec![below("example")]),
            (smarthost("unused"), SmarthostUse::Always, Vec::new()),
        ]);
        let route_of = |domain, usage| all.for_domain(&name(domain), usage).map(|route| route.queue_name.as_str());
        let queue_of = |name: &str| Some(all.named(&name.parse().unwrap())?.queue_name.as_str());
        assert_eq!(route_of("a.example", SmarthostUse::Always), queue_of("one"));
        assert_eq!(route_of("b.a.example", SmarthostUse::Always), queue_of("below"));
        assert_eq!(route_of("example", SmarthostUse::Always), queue_of("all"));
        assert_eq!(route_of("a.test", SmarthostUse::Always), queue_of("all"));
        assert_eq!(route_of("a.example", SmarthostUse::FailOver), queue_of("late"));
        assert_eq!(route_of("a.test", SmarthostUse::FailOver), None);
        assert_eq!(queue_of("unused"), Some("smarthost unused (relay.example:587)"));
    }
}
