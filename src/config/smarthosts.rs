//! `[[delivery.smarthosts]]`: relays that take mail in the recipients' own hosts' stead.

use std::collections::HashSet;
use std::str::FromStr;

use mail::smarthost_name::SmarthostName;
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

    fn faults(&self) -> Vec<(&'static str, String)> {
        let mut faults = Vec::new();
        if let Err(error) = self.name.parse::<SmarthostName>() {
            faults.push(("name", format!("[[delivery.smarthosts]] needs a `name`, which {error}")));
        }
        if self.hosts.is_empty() {
            let text = "[[delivery.smarthosts]] needs `hosts`: where it is, like \"relay.example.net:587\"";
            faults.push(("hosts", text.to_owned()));
        }
        if self.username.is_some() != self.password.is_some() {
            let key = if self.username.is_some() { "username" } else { "password" };
            faults.push((key, "`username` and `password` go together".to_owned()));
        }
        faults
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
        let mut names = HashSet::from([OF_ALL]);
        let mut faults = Vec::new();
        for (index, section) in self.smarthosts.iter().enumerate() {
            faults.extend(section.faults().into_iter().map(|(key, text)| (index, key, text)));
            if !names.insert(&section.name) && !section.name.is_empty() {
                faults.push((index, "name", format!("there is another smarthost `{}`", section.name)));
            }
        }
        faults
    }
}
