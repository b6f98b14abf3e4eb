//! `[[delivery.smarthosts]]`: relays that take mail in place of the recipient domains' mail hosts.

use std::collections::HashSet;
use std::str::FromStr;

use message::address::DomainName;
use model::slug::SmarthostName;
use queue::delivery::client::smtp::{SmarthostCredentials, TlsSecurityLevel};
use queue::routing::smarthosts::{DomainScope, Smarthost, SmarthostUse};

use super::DeliverySection;
use super::section::section;
use super::values::{SecretString, SmarthostAddress, one_or_many};

/// Name of the smarthost that `smarthost` in `[delivery]` configures.
const DEFAULT_SMARTHOST_NAME: &str = "smarthost";

section! {
    /// `[[delivery.smarthosts]]`
    #[derive(PartialEq, Eq)]
    SmarthostSection {
        /// Name of the smarthost. Required; checked after parsing, to report all problems together.
        name: String,
        /// Its hosts, in the order in which they are tried.
        #[serde(deserialize_with = "one_or_many")]
        hosts: Vec<SmarthostAddress>,
        /// Recipient domains; if empty, it is used only by the operator's overrides.
        #[serde(deserialize_with = "one_or_many")]
        domains: Vec<DomainPattern>,
        /// Always, or only if the domain's own mail hosts are unreachable.
        when: SmarthostUse,
        /// User name for AUTH.
        username: Option<String>,
        /// Password for AUTH.
        password: Option<SecretString>,
        /// TLS requirement; none means `tls` in `[delivery]`.
        tls: Option<TlsSecurityLevel>,
    }
}

/// Recipient domains: `example.com`, `*.example.com` (all below it), or `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainPattern(pub DomainScope);

impl FromStr for DomainPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name =
            |name: &str| name.parse().map_err(|_| "not `example.com`, `*.example.com` or `*` (all domains)".to_owned());
        Ok(Self(match text.strip_prefix("*.") {
            _ if text == "*" => DomainScope::All,
            Some(parent) => DomainScope::Below(name(parent)?),
            None => DomainScope::Domain(name(text)?),
        }))
    }
}

fn smarthost_credentials(username: Option<&String>, password: Option<&SecretString>) -> Option<SmarthostCredentials> {
    let (username, password) = username.zip(password)?;
    Some(SmarthostCredentials { username: username.clone(), password: password.0.clone() })
}

impl SmarthostSection {
    /// Converts to the queue's settings. Returns none for an invalid name, which is reported as a fault.
    fn to_smarthost(&self) -> Option<(Smarthost, SmarthostUse, Vec<DomainScope>)> {
        let smarthost = Smarthost {
            name: self.name.parse().ok()?,
            endpoints: self.hosts.iter().map(|host| host.0.clone()).collect(),
            credentials: smarthost_credentials(self.username.as_ref(), self.password.as_ref()),
            tls: self.tls,
        };
        Some((smarthost, self.when, self.domains.iter().map(|domains| domains.0.clone()).collect()))
    }

    fn find_faults(&self, default: TlsSecurityLevel) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let Err(error) = self.name.parse::<SmarthostName>() {
            faults.push(("name", format!("[[delivery.smarthosts]] requires a `name`, which {error}")));
        }
        if self.hosts.is_empty() {
            let text = "[[delivery.smarthosts]] requires `hosts`, for example \"relay.example.net:587\"";
            faults.push(("hosts", text.to_owned()));
        }
        let tls = self.tls.unwrap_or(default);
        let unverifiable = self.hosts.iter().find_map(|host| host.unverifiable_reason(tls));
        faults.extend(unverifiable.map(|text| ("hosts", text)));
        if self.username.is_some() != self.password.is_some() {
            let key = if self.username.is_some() { "username" } else { "password" };
            faults.push((key, "`username` requires `password`, and vice versa".to_owned()));
        }
        if self.when == SmarthostUse::FailOver && self.domains.is_empty() {
            let text = "`when = \"fail-over\"` requires `domains` (\"*\" for all)";
            faults.push(("when", text.to_owned()));
        }
        faults
    }
}

/// Returns whether the first pattern matches every domain that the second matches.
fn pattern_covers(pattern: &DomainScope, covered: &DomainScope) -> bool {
    let is_below = |name: &DomainName, ancestor: &DomainName| {
        std::iter::successors(name.parent(), DomainName::parent).any(|parent| parent == *ancestor)
    };
    match (pattern, covered) {
        (DomainScope::All, _) => true,
        (DomainScope::Below(ancestor), DomainScope::Domain(name)) => is_below(name, ancestor),
        (DomainScope::Below(ancestor), DomainScope::Below(name)) => ancestor == name || is_below(name, ancestor),
        (pattern, covered) => pattern == covered,
    }
}

impl DeliverySection {
    /// All smarthosts with their condition and domains.
    pub fn all_smarthosts(&self) -> Vec<(Smarthost, SmarthostUse, Vec<DomainScope>)> {
        let mut all: Vec<_> = self.smarthosts.iter().filter_map(SmarthostSection::to_smarthost).collect();
        if let (Some(host), Ok(name)) = (&self.smarthost, DEFAULT_SMARTHOST_NAME.parse()) {
            let smarthost = Smarthost {
                name,
                endpoints: vec![host.0.clone()],
                credentials: smarthost_credentials(self.smarthost_username.as_ref(), self.smarthost_password.as_ref()),
                tls: None,
            };
            all.push((smarthost, SmarthostUse::Always, vec![DomainScope::All]));
        }
        all
    }

    /// The smarthost for all remaining mail, if there is one.
    pub fn default_smarthost(&self) -> Option<Smarthost> {
        let is_default = |(_, condition, domains): &(_, SmarthostUse, Vec<DomainScope>)| {
            *condition == SmarthostUse::Always && domains.contains(&DomainScope::All)
        };
        self.all_smarthosts().into_iter().find(is_default).map(|(smarthost, ..)| smarthost)
    }

    /// Finds problems of `[[delivery.smarthosts]]`: index of the section, key, and text.
    pub(super) fn smarthost_faults(&self) -> Vec<(usize, &'static str, String)> {
        let mut names = HashSet::new();
        let mut faults = Vec::new();
        for (index, section) in self.smarthosts.iter().enumerate() {
            faults.extend(section.find_faults(self.tls).into_iter().map(|(key, text)| (index, key, text)));
            if section.name == DEFAULT_SMARTHOST_NAME && self.smarthost.is_some() {
                let text = format!("`{DEFAULT_SMARTHOST_NAME}` is the name of the one in [delivery]: use another");
                faults.push((index, "name", text));
            } else if !names.insert(&section.name) && !section.name.is_empty() {
                faults.push((
                    index,
                    "name",
                    format!("`{}` is the name of another smarthost: use another name", section.name),
                ));
            }
            let shadowed = section.domains.iter().filter_map(|domains| self.shadowing_reason(index, &domains.0));
            faults.extend(shadowed.map(|text| (index, "domains", text)));
        }
        faults
    }

    /// Returns why a section would never be used for these domains, if another smarthost takes their mail.
    fn shadowing_reason(&self, index: usize, scope: &DomainScope) -> Option<String> {
        let condition = self.smarthosts.get(index)?.when;
        let other_sections = self.smarthosts.iter().enumerate().filter(|(other_index, _)| *other_index != index);
        for (other_index, section) in other_sections {
            let is_same = |pattern: &DomainPattern| pattern.0 == *scope;
            if other_index < index && section.when == condition && section.domains.iter().any(is_same) {
                return Some(format!("`{}` already takes the mail of `{scope}`", section.name));
            }
            let is_covered = |pattern: &DomainPattern| pattern_covers(&pattern.0, scope);
            if (section.when, condition) == (SmarthostUse::Always, SmarthostUse::FailOver)
                && section.domains.iter().any(is_covered)
            {
                return Some(format!(
                    "`{}` always takes the mail of `{scope}`, so a fail-over smarthost is never used: add `hosts` to \
                     it instead",
                    section.name
                ));
            }
        }
        match (&self.smarthost, condition) {
            (Some(_), SmarthostUse::Always) if *scope == DomainScope::All => {
                Some(format!("`{DEFAULT_SMARTHOST_NAME}` in [delivery] already takes the mail of `{scope}`"))
            }
            (Some(_), SmarthostUse::FailOver) => Some(format!(
                "`{DEFAULT_SMARTHOST_NAME}` in [delivery] always takes all mail, so a fail-over smarthost is never used"
            )),
            _ => None,
        }
    }
}
