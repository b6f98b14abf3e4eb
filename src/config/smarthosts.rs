//! `[[delivery.smarthosts]]`: relays that take mail in the recipients' own hosts' stead.

use std::collections::HashSet;
use std::str::FromStr;

use mail::address::Name;
use mail::given_name::SmarthostName;
use queue::courier::smtp::Credentials;
use queue::smarthosts::{Smarthost, When, Whose};
use serde::Deserialize;

use super::values::{Hidden, SmarthostAddress, one_or_many};
use super::{DeliverySection, TlsChoice};

/// The name of the one that `smarthost` in `[delivery]` says.
const OF_ALL: &str = "smarthost";

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
    pub domains: Vec<DomainsChoice>,
    /// Always, or where the domain's own hosts cannot be reached.
    #[serde(default)]
    pub when: WhenChoice,
    /// Who we are there.
    pub username: Option<String>,
    /// The password there.
    pub password: Option<Hidden>,
    /// What TLS is asked of it; none is: what is asked of all hosts.
    pub tls: Option<TlsChoice>,
}

/// `example.com`, `*.example.com`, or `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainsChoice(pub Whose);

impl FromStr for DomainsChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = |name: &str| {
            name.parse().map_err(|_| "not `example.com`, `*.example.com` or `*` (all domains)".to_owned())
        };
        Ok(Self(match text.strip_prefix("*.") {
            _ if text == "*" => Whose::Everybody,
            Some(above) => Whose::Below(name(above)?),
            None => Whose::Domain(name(text)?),
        }))
    }
}

/// When a smarthost takes mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenChoice {
    /// Always.
    #[default]
    Always,
    /// Where the domain's own hosts cannot be reached.
    FailOver,
}

impl From<WhenChoice> for When {
    fn from(choice: WhenChoice) -> Self {
        match choice {
            WhenChoice::Always => Self::Always,
            WhenChoice::FailOver => Self::FailOver,
        }
    }
}

fn credentials(username: Option<&String>, password: Option<&Hidden>) -> Option<Credentials> {
    let (username, password) = username.zip(password)?;
    Some(Credentials { username: username.clone(), password: password.0.clone() })
}

impl SmarthostSection {
    /// As the queue wants it; none where its name is none, which is told as a fault.
    fn smarthost(&self) -> Option<(Smarthost, When, Vec<Whose>)> {
        let smarthost = Smarthost {
            name: self.name.parse().ok()?,
            at: self.hosts.iter().map(|host| host.0.clone()).collect(),
            credentials: credentials(self.username.as_ref(), self.password.as_ref()),
            tls: self.tls.map(Into::into),
        };
        Some((smarthost, self.when.into(), self.domains.iter().map(|domains| domains.0.clone()).collect()))
    }

    fn faults(&self, usual: TlsChoice) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let Err(error) = self.name.parse::<SmarthostName>() {
            faults.push(("name", format!("[[delivery.smarthosts]] needs a `name`, which {error}")));
        }
        if self.hosts.is_empty() {
            let text = "[[delivery.smarthosts]] needs `hosts`: where it is, like \"relay.example.net:587\"";
            faults.push(("hosts", text.to_owned()));
        }
        let tls = self.tls.unwrap_or(usual);
        let unverifiable = self.hosts.iter().find_map(|host| host.unverifiable(tls));
        faults.extend(unverifiable.map(|text| ("hosts", text)));
        if self.username.is_some() != self.password.is_some() {
            let key = if self.username.is_some() { "username" } else { "password" };
            faults.push((key, "`username` and `password` go together".to_owned()));
        }
        if self.when == WhenChoice::FailOver && self.domains.is_empty() {
            let text = "`when = \"fail-over\"` needs `domains`: whose mail it takes over (\"*\" for all)";
            faults.push(("when", text.to_owned()));
        }
        faults
    }
}

/// Whether one takes all mail that the other would take.
fn covers(one: &Whose, other: &Whose) -> bool {
    let is_below = |name: &Name, above: &Name| {
        std::iter::successors(name.parent(), Name::parent).any(|parent| parent == *above)
    };
    match (one, other) {
        (Whose::Everybody, _) => true,
        (Whose::Below(above), Whose::Domain(name)) => is_below(name, above),
        (Whose::Below(above), Whose::Below(name)) => above == name || is_below(name, above),
        (one, other) => one == other,
    }
}

impl DeliverySection {
    /// Which smarthost takes whose mail.
    #[must_use]
    pub fn all_smarthosts(&self) -> Vec<(Smarthost, When, Vec<Whose>)> {
        let mut all: Vec<_> = self.smarthosts.iter().filter_map(SmarthostSection::smarthost).collect();
        if let (Some(host), Ok(name)) = (&self.smarthost, OF_ALL.parse()) {
            let smarthost = Smarthost {
                name,
                at: vec![host.0.clone()],
                credentials: credentials(self.smarthost_username.as_ref(), self.smarthost_password.as_ref()),
                tls: None,
            };
            all.push((smarthost, When::Always, vec![Whose::Everybody]));
        }
        all
    }

    /// The one that takes all mail that no other takes, if there is one.
    #[must_use]
    pub fn smarthost_of_all(&self) -> Option<Smarthost> {
        let takes_all = |(_, when, whose): &(_, When, Vec<Whose>)| {
            *when == When::Always && whose.contains(&Whose::Everybody)
        };
        self.all_smarthosts().into_iter().find(takes_all).map(|(smarthost, ..)| smarthost)
    }

    /// What is wrong with those that have names: the block, its key, and what it is.
    pub(super) fn smarthost_faults(&self) -> Vec<(usize, &'static str, String)> {
        let mut names = HashSet::new();
        let mut faults = Vec::new();
        for (index, section) in self.smarthosts.iter().enumerate() {
            faults.extend(section.faults(self.tls).into_iter().map(|(key, text)| (index, key, text)));
            if section.name == OF_ALL && self.smarthost.is_some() {
                let text = format!("`{OF_ALL}` is the name of the one in [delivery]: take another");
                faults.push((index, "name", text));
            } else if !names.insert(&section.name) && !section.name.is_empty() {
                faults.push((index, "name", format!("there is another smarthost `{}`", section.name)));
            }
            let taken = section.domains.iter().filter_map(|domains| self.taken_by(index, &domains.0));
            faults.extend(taken.map(|text| (index, "domains", text)));
        }
        faults
    }

    /// Why a block would never be sent the mail of these domains, if somebody else is.
    fn taken_by(&self, index: usize, whose: &Whose) -> Option<String> {
        let when = self.smarthosts.get(index)?.when;
        let others = self.smarthosts.iter().enumerate().filter(|(other, _)| *other != index);
        for (other, section) in others {
            let is_same = |theirs: &DomainsChoice| theirs.0 == *whose;
            if other < index && section.when == when && section.domains.iter().any(is_same) {
                return Some(format!("`{}` takes the mail of `{whose}` already", section.name));
            }
            let is_covered = |theirs: &DomainsChoice| covers(&theirs.0, whose);
            if (section.when, when) == (WhenChoice::Always, WhenChoice::FailOver)
                && section.domains.iter().any(is_covered)
            {
                return Some(format!(
                    "`{}` takes the mail of `{whose}` always: nobody takes over from it (give it more `hosts`)",
                    section.name
                ));
            }
        }
        match (&self.smarthost, when) {
            (Some(_), WhenChoice::Always) if *whose == Whose::Everybody => {
                Some(format!("`{OF_ALL}` in [delivery] takes the mail of `{whose}` already"))
            }
            (Some(_), WhenChoice::FailOver) => {
                Some(format!("`{OF_ALL}` in [delivery] takes all mail always: nobody takes over from it"))
            }
            _ => None,
        }
    }
}
