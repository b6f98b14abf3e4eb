//! SIGHUP: reloads the configuration and the certificates.
//!
//! ```text
//! file + environment ─► no problems? ─► each key: unchanged, applied now, or requires a restart ─► log
//! ```
//!
//! A file with any problem is refused as a whole: each problem is logged, and nothing changes. The running
//! configuration is that of the start, with the keys changed that can change at run time. So a key that requires a
//! restart is logged at every SIGHUP until the restart.

use std::path::{Path, PathBuf};

use model::log_text;

use crate::active_certificates::ActiveCertificates;
use crate::certificate::Certificate;
use crate::config::log::LogSection;
use crate::config::mx::MxSection;
use crate::config::{
    self, ApiSection, BillingSection, Config, ConfigProblem, ConversionsSection, DeliverySection, OpsSection,
    ProxySection, ServiceSection, SmsSection, StoreSection, SubmissionSection, TestingSection, WebhooksSection,
};
use crate::serve::Listeners;
use crate::services::Server;

/// A key of the configuration, and how a change is applied.
pub(crate) struct ReloadKey {
    pub(crate) name: &'static str,
    pub(crate) is_unchanged: fn(&Config, &Config) -> bool,
    /// Applies the change, or does nothing if it requires a restart.
    pub(crate) apply: fn(&mut Config, &Config),
}

/// A key outside of sections, which requires a restart.
macro_rules! root_key {
    ($key:ident) => {
        ReloadKey { name: stringify!($key), is_unchanged: |running, new| running.$key == new.$key, apply: restart }
    };
}

macro_rules! key {
    ($section:ident.$key:ident, $apply:expr) => {
        ReloadKey {
            name: concat!(stringify!($section), ".", stringify!($key)),
            is_unchanged: |running, new| running.$section.$key == new.$section.$key,
            apply: $apply,
        }
    };
}

/// A key of `[tls.acme]`.
macro_rules! acme {
    ($key:ident) => {
        ReloadKey {
            name: concat!("tls.acme.", stringify!($key)),
            is_unchanged: |running, new| {
                running.tls.acme.as_ref().map(|acme| &acme.$key) == new.tls.acme.as_ref().map(|acme| &acme.$key)
            },
            apply: restart,
        }
    };
}

/// A key of `[[relay]]`.
macro_rules! relay {
    ($key:ident, $apply:expr) => {
        ReloadKey {
            name: concat!("relay.", stringify!($key)),
            is_unchanged: |running, new| running.relay.iter().map(|r| &r.$key).eq(new.relay.iter().map(|r| &r.$key)),
            apply: $apply,
        }
    };
}

/// The keys of a section of `[plans.*]`.
macro_rules! plan {
    ($plan:ident) => {
        plan!($plan: emails_per_month emails_per_day overage domains requests_per_second affiliates storage)
    };
    ($plan:ident: $($key:ident)*) => {
        &[$(ReloadKey {
            name: concat!("plans.", stringify!($plan), ".", stringify!($key)),
            is_unchanged: |running, new| running.plans.$plan.$key == new.plans.$plan.$key,
            apply: |running, new| running.plans.$plan.$key = new.plans.$plan.$key,
        }),*]
    };
}

/// All keys of the configuration.
const KEYS: &[&[ReloadKey]] = &[
    &[root_key!(hostname), root_key!(data_dir)],
    StoreSection::KEYS,
    &[key!(tls.certificate, apply_certificate), key!(tls.private_key, apply_certificate)],
    &[acme!(directory), acme!(contact), acme!(names), acme!(http_listen), acme!(roots)],
    SubmissionSection::KEYS,
    &[relay!(listen, restart), relay!(networks, apply_relays), relay!(account, apply_relays)],
    MxSection::KEYS,
    ProxySection::KEYS,
    ApiSection::KEYS,
    OpsSection::KEYS,
    LogSection::KEYS,
    &[key!(dns.servers, restart), key!(dns.trust_anchors, restart)],
    DeliverySection::KEYS,
    WebhooksSection::KEYS,
    ServiceSection::KEYS,
    ConversionsSection::KEYS,
    BillingSection::KEYS,
    SmsSection::KEYS,
    plan!(free),
    plan!(pro),
    plan!(scale),
    plan!(dedicated),
    TestingSection::KEYS,
];

/// Applies nothing.
fn restart(_: &mut Config, _: &Config) {}

/// Applies new certificate files. Listeners without a certificate cannot get one without a restart.
fn apply_certificate(running: &mut Config, new: &Config) {
    if running.tls.certificate.is_some() && new.tls.certificate.is_some() {
        running.tls.clone_from(&new.tls);
    }
}

/// Applies networks and account of relay listeners, if their addresses are unchanged.
fn apply_relays(running: &mut Config, new: &Config) {
    if running.relay.iter().map(|r| &r.listen).eq(new.relay.iter().map(|r| &r.listen)) {
        running.relay.clone_from(&new.relay);
    }
}

/// Result of a reload: the names of the changed keys (`section.key`).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    pub applied: Vec<&'static str>,
    /// Changed in the file; requires a restart.
    pub needs_restart: Vec<&'static str>,
}

/// Names of all keys.
pub fn keys() -> impl Iterator<Item = &'static str> {
    KEYS.iter().copied().flatten().map(|key| key.name)
}

/// Applies all changes that do not require a restart.
pub fn apply_changes(running: &mut Config, new: &Config) -> ConfigChanges {
    let changed: Vec<_> = KEYS.iter().copied().flatten().filter(|key| !(key.is_unchanged)(running, new)).collect();
    changed.iter().for_each(|key| (key.apply)(running, new));
    let (applied, remaining): (Vec<_>, Vec<_>) = changed.into_iter().partition(|key| (key.is_unchanged)(running, new));
    let names = |keys: Vec<&ReloadKey>| keys.iter().map(|key| key.name).collect();
    ConfigChanges { applied: names(applied), needs_restart: names(remaining) }
}

/// Parts of the server to which changes are applied.
pub struct ReloadTargets<'a> {
    pub server: &'a Server,
    pub listeners: &'a Listeners,
    /// Certificates of the listeners.
    pub certificates: Option<&'a ActiveCertificates>,
}

/// The running configuration and its file.
pub struct ConfigReloader {
    file: PathBuf,
    running: Config,
}

impl ConfigReloader {
    /// Starts with the configuration that the server was started with.
    pub fn new(file: PathBuf, running: Config) -> Self {
        Self { file, running }
    }

    /// Reads the file, applies changes, and logs the result.
    pub fn reload(&mut self, targets: &ReloadTargets<'_>) {
        let new = match config::from_file(&self.file) {
            Ok(new) => new,
            Err(problems) => {
                problems.iter().for_each(|problem| log_problem(&self.file, problem));
                let file = self.file.display();
                return tracing::error!(%file, problems = problems.len(), "reload refused: nothing was changed");
            }
        };
        let mut next = self.running.clone();
        let changes = apply_changes(&mut next, &new);
        // The contents of the certificate files may have changed.
        if let Some(certificates) = targets.certificates {
            let replaced = Certificate::from_config(&next)
                .and_then(|read| read.map(|certificate| certificates.replace(&certificate)).transpose());
            if let Err(error) = replaced {
                return tracing::error!(%error, "reload refused: nothing was changed");
            }
            tracing::info!("certificates reloaded");
        }
        self.running = next;
        targets.server.reload(&self.running);
        targets.listeners.reload(&self.running);
        log_text::show_addresses(self.running.log.addresses);
        let applied = if changes.applied.is_empty() { "nothing".to_owned() } else { changes.applied.join(", ") };
        tracing::info!(applied, "configuration reloaded");
        if !changes.needs_restart.is_empty() {
            tracing::warn!(keys = changes.needs_restart.join(", "), "changed keys require a restart");
        }
        // A database that does not answer must not delay the handling of signals.
        let (server, config) = (targets.server.clone(), new);
        tokio::spawn(async move { server.warn_of_missing_relay_accounts(&config).await });
    }
}

/// Addresses in the configuration's own texts: forms and examples.
const EXAMPLES: [&str; 3] = ["local@domain", "postmaster@example.net", "USER:PASSWORD@HOST"];

/// A problem without the local parts of addresses in values; those in examples stay.
pub(crate) fn masked_problem(problem: &ConfigProblem) -> String {
    log_text::masked_except(&problem.to_string(), &EXAMPLES)
}

pub(crate) fn log_problem(file: &Path, problem: &ConfigProblem) {
    let text = masked_problem(problem);
    log_text::with_addresses(|| tracing::error!(file = %file.display(), "{text}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "hostname = \"mx.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n";

    fn config(extra: &str) -> Config {
        config::from_text(&format!("{START}{extra}"), []).unwrap()
    }

    #[test]
    fn changes_that_need_a_restart_are_reported_again() {
        let mut running = config("");
        let new = config("[delivery]\npaused = true\nport = 2525\n[submission]\nsessions_max = 7\n");
        let changes = apply_changes(&mut running, &new);
        assert_eq!(changes.applied, ["submission.sessions_max", "delivery.paused"]);
        assert_eq!(changes.needs_restart, ["delivery.port"]);
        assert_eq!((running.delivery.paused, running.delivery.port), (true, 25));
        let changes = apply_changes(&mut running, &new);
        assert_eq!((changes.applied.len(), changes.needs_restart), (0, vec!["delivery.port"]));
    }

    #[test]
    fn relays_with_changed_addresses_need_a_restart() {
        let relay = |listen: &str, network: &str| {
            config(&format!("[[relay]]\nlisten = \"{listen}\"\nnetworks = \"{network}\"\naccount = \"a\"\n"))
        };
        let mut running = relay("127.0.0.1:2", "10.0.0.0/8");
        assert_eq!(apply_changes(&mut running, &relay("127.0.0.1:2", "127.0.0.1")).applied, ["relay.networks"]);
        let changes = apply_changes(&mut running, &relay("127.0.0.1:3", "10.0.0.0/8"));
        assert_eq!((changes.applied.len(), changes.needs_restart), (0, vec!["relay.listen", "relay.networks"]));
    }
}
