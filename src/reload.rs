//! SIGHUP: reloads the configuration and the certificates.
//!
//! ```text
//! file + environment ─► no problems? ─► each key: unchanged, applied now, or requires a restart ─► log
//! ```
//!
//! A file with any problem is refused as a whole: each problem is logged, and nothing changes. The running
//! configuration is that of the start, with the keys changed that can change at run time. So a key that requires a
//! restart is logged at every SIGHUP until the restart.

use std::path::PathBuf;

use crate::active_certificates::ActiveCertificates;
use crate::certificate::Certificate;
use crate::config::{self, Config};
use crate::serve::Listeners;
use crate::services::Server;

/// A key of the configuration, and how a change is applied.
struct ReloadKey {
    name: &'static str,
    is_unchanged: fn(&Config, &Config) -> bool,
    /// Applies the change, or does nothing if it requires a restart.
    apply: fn(&mut Config, &Config),
}

macro_rules! key {
    ($section:ident.$key:ident, $take:expr) => {
        ReloadKey {
            name: concat!(stringify!($section), ".", stringify!($key)),
            is_unchanged: |running, new| running.$section.$key == new.$section.$key,
            apply: $take,
        }
    };
}

/// A key that is applied at run time.
macro_rules! live {
    ($section:ident.$key:ident) => {
        key!($section.$key, |running, new| running.$section.$key.clone_from(&new.$section.$key))
    };
}

/// A key that requires a restart.
macro_rules! restart {
    ($section:ident.$key:ident) => {
        key!($section.$key, |_, _| {})
    };
    ($key:ident) => {
        ReloadKey { name: stringify!($key), is_unchanged: |running, new| running.$key == new.$key, apply: |_, _| {} }
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
            apply: |_, _| {},
        }
    };
}

/// A key of `[[relay]]`.
macro_rules! relay {
    ($key:ident, $take:expr) => {
        ReloadKey {
            name: concat!("relay.", stringify!($key)),
            is_unchanged: |running, new| running.relay.iter().map(|r| &r.$key).eq(new.relay.iter().map(|r| &r.$key)),
            apply: $take,
        }
    };
}

/// A key of `[plans.*]`.
macro_rules! plan {
    ($plan:ident.$key:ident) => {
        ReloadKey {
            name: concat!("plans.", stringify!($plan), ".", stringify!($key)),
            is_unchanged: |running, new| running.plans.$plan.$key == new.plans.$plan.$key,
            apply: |running, new| running.plans.$plan.$key = new.plans.$plan.$key,
        }
    };
}

/// All keys of the configuration.
const KEYS: &[ReloadKey] = &[
    restart!(hostname),
    restart!(data_dir),
    restart!(store.engine),
    restart!(store.url),
    restart!(store.cluster),
    restart!(store.reserve_bytes),
    live!(store.retention),
    key!(tls.certificate, apply_certificate),
    key!(tls.private_key, apply_certificate),
    acme!(directory),
    acme!(contact),
    acme!(names),
    acme!(http_listen),
    acme!(roots),
    restart!(submission.listen),
    restart!(submission.implicit_tls),
    restart!(submission.username),
    live!(submission.message_bytes_max),
    live!(submission.recipients_max),
    live!(submission.sessions_max),
    live!(submission.sessions_per_address_max),
    live!(submission.bytes_in_flight_max),
    relay!(listen, |_, _| {}),
    relay!(networks, apply_relays),
    relay!(account, apply_relays),
    restart!(mx.listen),
    live!(mx.message_bytes_max),
    live!(mx.recipients_max),
    live!(mx.sessions_per_address_max),
    live!(mx.connections_per_minute_max),
    live!(mx.errors_max),
    restart!(mx.unknown_recipients_max),
    restart!(mx.unknown_recipients_per_hour_max),
    live!(mx.greet_delay),
    live!(mx.dnsbl),
    live!(mx.dnsbl_action),
    live!(mx.dmarc_reject),
    live!(mx.dns_failure),
    live!(mx.spam_filter),
    live!(mx.rspamd_url),
    live!(mx.rspamd_failure),
    live!(mx.rspamd_mark_score),
    live!(mx.rspamd_reject_score),
    live!(mx.postmaster),
    restart!(mx.mta_sts),
    live!(mx.complaint_reporters),
    restart!(proxy.networks),
    restart!(api.listen),
    restart!(api.base_url),
    restart!(api.tls),
    live!(api.rate_limit),
    restart!(api.connections_per_address_max),
    restart!(api.forwarding_networks),
    restart!(ops.listen),
    restart!(ops.console_url),
    restart!(log.format),
    restart!(log.level),
    live!(log.addresses),
    restart!(dns.servers),
    restart!(dns.trust_anchors),
    restart!(delivery.port),
    restart!(delivery.source_addresses),
    live!(delivery.retry),
    live!(delivery.give_up_after),
    restart!(delivery.tls),
    restart!(delivery.mta_sts),
    restart!(delivery.dane),
    restart!(delivery.roots),
    restart!(delivery.tls_report_contact),
    restart!(delivery.smarthost),
    restart!(delivery.smarthost_username),
    restart!(delivery.smarthost_password),
    restart!(delivery.allow_private_destinations),
    live!(delivery.paused),
    restart!(delivery.dkim),
    restart!(delivery.dkim2),
    restart!(delivery.tasks_in_memory_max),
    restart!(delivery.body_bytes_in_memory_max),
    restart!(delivery.pace),
    live!(delivery.replies),
    restart!(delivery.smarthosts),
    restart!(delivery.pools),
    restart!(webhooks.allow_private_destinations),
    restart!(webhooks.allow_http),
    restart!(webhooks.retry),
    restart!(service.sandbox_sender),
    restart!(service.auto_verify_domains),
    restart!(service.ownership_label),
    restart!(service.default_plan),
    restart!(service.return_path_host),
    restart!(service.spf_include_host),
    restart!(service.domain_connect_template),
    restart!(service.domain_connect_key),
    restart!(service.domain_connect_key_name),
    restart!(conversions.url),
    restart!(conversions.token),
    restart!(conversions.email_hash),
    restart!(billing.upgrade_url),
    restart!(billing.stripe_webhook_secrets),
    restart!(sms.url),
    restart!(sms.token),
    restart!(sms.from),
    plan!(free.emails_per_month),
    plan!(free.emails_per_day),
    plan!(free.overage),
    plan!(free.domains),
    plan!(free.requests_per_second),
    plan!(free.affiliates),
    plan!(free.storage),
    plan!(pro.emails_per_month),
    plan!(pro.emails_per_day),
    plan!(pro.overage),
    plan!(pro.domains),
    plan!(pro.requests_per_second),
    plan!(pro.affiliates),
    plan!(pro.storage),
    plan!(scale.emails_per_month),
    plan!(scale.emails_per_day),
    plan!(scale.overage),
    plan!(scale.domains),
    plan!(scale.requests_per_second),
    plan!(scale.affiliates),
    plan!(scale.storage),
    plan!(dedicated.emails_per_month),
    plan!(dedicated.emails_per_day),
    plan!(dedicated.overage),
    plan!(dedicated.domains),
    plan!(dedicated.requests_per_second),
    plan!(dedicated.affiliates),
    plan!(dedicated.storage),
    restart!(testing.clock_offset),
    restart!(testing.mta_sts_port),
];

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
    KEYS.iter().map(|key| key.name)
}

/// Applies all changes that do not require a restart.
pub fn apply_changes(running: &mut Config, new: &Config) -> ConfigChanges {
    let changed: Vec<_> = KEYS.iter().filter(|key| !(key.is_unchanged)(running, new)).collect();
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
                let file = self.file.display();
                for problem in &problems {
                    tracing::error!(%file, "{problem}");
                }
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
        model::log_text::show_addresses(self.running.log.addresses);
        let applied = if changes.applied.is_empty() { "nothing".to_owned() } else { changes.applied.join(", ") };
        tracing::info!(applied, "configuration reloaded");
        if !changes.needs_restart.is_empty() {
            tracing::warn!(keys = changes.needs_restart.join(", "), "changed keys require a restart");
        }
    }
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
