//! `[[delivery.smarthosts]]`: relays that take mail in the recipients' own hosts' stead.

use std::collections::HashSet;
use std::str::FromStr;

use mail::address::DomainName;
use mail::given_name::SmarthostName;
use queue::courier::smtp::SmarthostCredentials;
use queue::smarthosts::{DomainScope, Smarthost, SmarthostUse};
use serde::Deserialize;

use super::values::{SecretString, SmarthostAddress, one_or_many};
use super::{DeliverySection, TlsChoice};

/// The name of the one that `smarthost` in `[delivery]` says.
const DEFAULT_SMARTHOST_NAME: &str = "smarthost";

/// `[[delivery.smarthosts]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmarthostSection {
    /// What the operator calls it. Required; not by serde, so that all that is missing is named.
    #[serde(default)]
    pub name: String,
    /// Where it is, in the order in which they are tried.
    #[serde(default, deserialize_with = "one_or_many")]
    pub hosts: Vec<SmarthostAddress>,
    /// Whose mail it takes; none is: what the operator sends there while the server runs.
    #[serde(default, deserialize_with = "one_or_many")]
    pub domains: Vec<DomainPattern>,
    /// Always, or where the domain's own hosts cannot be reached.
    #[serde(default)]
    pub when: SmarthostCondition,
    /// Who we are there.
    pub username: Option<String>,
    /// The password there.
    pub password: Option<SecretString>,
    /// What TLS is asked of it; none is: what is asked of all hosts.
    pub tls: Option<TlsChoice>,
}

/// `example.com`, `*.example.com`, or `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainPattern(pub DomainScope);

impl FromStr for DomainPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name =
            |name: &str| name.parse().map_err(|_| "not `example.com`, `*.example.com` or `*` (all domains)".to_owned());
        Ok(Self(match text.strip_prefix("*.") {
            _ if text == "*" => DomainScope::All,
            Some(above) => DomainScope::Below(name(above)?),
            None => DomainScope::Domain(name(text)?),
        }))
    }
}

/// When a smarthost takes mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmarthostCondition {
    /// Always.
    #[default]
    Always,
    /// Where the domain's own hosts cannot be reached.
    FailOver,
}

impl From<SmarthostCondition> for SmarthostUse {
    fn from(choice: SmarthostCondition) -> Self {
        match choice {
            SmarthostCondition::Always => Self::Always,
            SmarthostCondition::FailOver => Self::FailOver,
        }
    }
}

fn smarthost_credentials(username: Option<&String>, password: Option<&SecretString>) -> Option<SmarthostCredentials> {
    let (username, password) = username.zip(password)?;
    Some(SmarthostCredentials { username: username.clone(), password: password.0.clone() })
}

impl SmarthostSection {
    /// As the queue wants it; none where its name is none, which is told as a fault.
    fn to_smarthost(&self) -> Option<(Smarthost, SmarthostUse, Vec<DomainScope>)> {
        let smarthost = Smarthost {
            name: self.name.parse().ok()?,
            endpoints: self.hosts.iter().map(|host| host.0.clone()).collect(),
            credentials: smarthost_credentials(self.username.as_ref(), self.password.as_ref()),
            tls: self.tls.map(Into::into),
        };
        Some((smarthost, self.when.into(), self.domains.iter().map(|domains| domains.0.clone()).collect()))
    }

    fn find_faults(&self, usual: TlsChoice) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let Err(error) = self.name.parse::<SmarthostName>() {
            faults.push(("name", format!("[[delivery.smarthosts]] needs a `name`, which {error}")));
        }
        if self.hosts.is_empty() {
            let text = "[[delivery.smarthosts]] needs `hosts`: where it is, like \"relay.example.net:587\"";
            faults.push(("hosts", text.to_owned()));
        }
        let tls = self.tls.unwrap_or(usual);
        let unverifiable = self.hosts.iter().find_map(|host| host.unverifiable_reason(tls));
        faults.extend(unverifiable.map(|text| ("hosts", text)));
        if self.username.is_some() != self.password.is_some() {
            let key = if self.username.is_some() { "username" } else { "password" };
            faults.push((key, "`username` and `password` go together".to_owned()));
        }
        if self.when == SmarthostCondition::FailOver && self.domains.is_empty() {
            let text = "`when = \"fail-over\"` needs `domains`: whose mail it takes over (\"*\" for all)";
            faults.push(("when", text.to_owned()));
        }
        faults
    }
}

/// Whether one takes all mail that the other would take.
fn pattern_covers(one: &DomainScope, other: &DomainScope) -> bool {
    let is_below = |name: &DomainName, above: &DomainName| {
        std::iter::successors(name.parent(), DomainName::parent).any(|parent| parent == *above)
    };
    match (one, other) {
        (DomainScope::All, _) => true,
        (DomainScope::Below(above), DomainScope::Domain(name)) => is_below(name, above),
        (DomainScope::Below(above), DomainScope::Below(name)) => above == name || is_below(name, above),
        (one, other) => one == other,
    }
}

impl DeliverySection {
    /// Which smarthost takes whose mail.
    #[must_use]
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

    /// The one that takes all mail that no other takes, if there is one.
    #[must_use]
    pub fn default_smarthost(&self) -> Option<Smarthost> {
        let takes_all = |(_, when, whose): &(_, SmarthostUse, Vec<DomainScope>)| {
            *when == SmarthostUse::Always && whose.contains(&DomainScope::All)
        };
        self.all_smarthosts().into_iter().find(takes_all).map(|(smarthost, ..)| smarthost)
    }

    /// What is wrong with those that have names: the block, its key, and what it is.
    pub(super) fn smarthost_faults(&self) -> Vec<(usize, &'static str, String)> {
        let mut names = HashSet::new();
        let mut faults = Vec::new();
        for (index, section) in self.smarthosts.iter().enumerate() {
            faults.extend(section.find_faults(self.tls).into_iter().map(|(key, text)| (index, key, text)));
            if section.name == DEFAULT_SMARTHOST_NAME && self.smarthost.is_some() {
                let text = format!("`{DEFAULT_SMARTHOST_NAME}` is the name of the one in [delivery]: take another");
                faults.push((index, "name", text));
            } else if !names.insert(&section.name) && !section.name.is_empty() {
                faults.push((index, "name", format!("there is another smarthost `{}`", section.name)));
            }
            let taken = section.domains.iter().filter_map(|domains| self.shadowed_by(index, &domains.0));
            faults.extend(taken.map(|text| (index, "domains", text)));
        }
        faults
    }

    /// Why a block would never be sent the mail of these domains, if somebody else is.
    fn shadowed_by(&self, index: usize, whose: &DomainScope) -> Option<String> {
        let when = self.smarthosts.get(index)?.when;
        let others = self.smarthosts.iter().enumerate().filter(|(other, _)| *other != index);
        for (other, section) in others {
            let is_same = |theirs: &DomainPattern| theirs.0 == *whose;
            if other < index && section.when == when && section.domains.iter().any(is_same) {
                return Some(format!("`{}` takes the mail of `{whose}` already", section.name));
            }
            let is_covered = |theirs: &DomainPattern| pattern_covers(&theirs.0, whose);
            if (section.when, when) == (SmarthostCondition::Always, SmarthostCondition::FailOver)
                && section.domains.iter().any(is_covered)
            {
                return Some(format!(
                    "`{}` takes the mail of `{whose}` always: nobody takes over from it (give it more `hosts`)",
                    section.name
                ));
            }
        }
        match (&self.smarthost, when) {
            (Some(_), SmarthostCondition::Always) if *whose == DomainScope::All => {
                Some(format!("`{DEFAULT_SMARTHOST_NAME}` in [delivery] takes the mail of `{whose}` already"))
            }
            (Some(_), SmarthostCondition::FailOver) => Some(format!(
                "`{DEFAULT_SMARTHOST_NAME}` in [delivery] takes all mail always: nobody takes over from it"
            )),
            _ => None,
        }
    }
}
