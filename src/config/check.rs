//! Checks of a configuration whose values can all be parsed: values out of range, contradictory keys, and, separately,
//! files and addresses that this machine lacks.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use message::classify::{CodePattern, ReplyAction};

use super::fault::{ConfigFault, config_fault};
use super::files::{certificate_file_error, file_text, key_file_error, read_error, write_error};
use super::url::url_fault;
use super::{Config, MxSection, OnOff, PaceSection, ReplySection, StoreEngine, StoreSection, SubmissionSection};
use crate::certificate::{self, Certificate};
use crate::services;

/// Maximum number of attempts of a webhook delivery.
const WEBHOOK_ATTEMPTS_MAX: usize = 20;
/// Maximum suspension of a site by a reply rule.
const SUSPENSION_MAX: Duration = Duration::from_secs(24 * 3600);

/// Checks that need only the configuration itself.
pub(super) fn check_values(config: &Config) -> Vec<ConfigFault> {
    let mut faults = Vec::new();
    check_combinations(config, &mut faults);
    check_bounds(config, &mut faults);
    for (index, relay) in config.relay.iter().enumerate() {
        let required = [
            ("listen", relay.listen.is_empty(), "the addresses to listen on"),
            ("networks", relay.networks.is_empty(), "at least one network of permitted clients"),
            ("account", relay.account.is_empty(), "the account of the mail, by its id or its owner's address"),
        ];
        for (key, _, detail) in required.into_iter().filter(|(_, is_missing, _)| *is_missing) {
            faults.push(ConfigFault {
                section: "relay",
                index,
                key,
                text: format!("[[relay]] requires `{key}`: {detail}"),
            });
        }
    }
    for (index, pace) in config.delivery.pace.iter().enumerate() {
        let to_fault = |(key, text): (&'static str, &str)| ConfigFault {
            section: "delivery.pace",
            index,
            key,
            text: text.to_owned(),
        };
        faults.extend(pace_faults(pace).into_iter().map(to_fault));
        let previous_sections = config.delivery.pace.iter().take(index);
        if previous_sections.into_iter().any(|previous| previous.mail_host == pace.mail_host) {
            let hosts = pace.mail_host.as_ref().map_or("all other hosts".to_owned(), |name| format!("`{name}`"));
            let text = format!("a second [[delivery.pace]] for {hosts}: merge the two");
            faults.push(ConfigFault { section: "delivery.pace", index, key: "mail_host", text });
        }
    }
    for (index, section) in config.delivery.replies.iter().enumerate() {
        let to_fault = |(key, text)| ConfigFault { section: "delivery.replies", index, key, text };
        faults.extend(reply_fault(section).map(to_fault));
    }
    for (index, key, text) in config.delivery.smarthost_faults() {
        faults.push(ConfigFault { section: "delivery.smarthosts", index, key, text });
    }
    for (index, key, text) in config.delivery.pool_faults() {
        faults.push(ConfigFault { section: "delivery.pools", index, key, text });
    }
    let plans = &config.plans;
    for (section, plan) in [
        ("plans.free", plans.free),
        ("plans.pro", plans.pro),
        ("plans.scale", plans.scale),
        ("plans.dedicated", plans.dedicated),
    ] {
        if plan.requests_per_second == 0 {
            let text = "`requests_per_second` must be at least 1; to block an account, suspend it";
            faults.push(config_fault(section, "requests_per_second", text));
        }
    }
    if let Err(detail) = super::log::filter(&config.log.level) {
        faults.push(config_fault("log", "level", detail));
    }
    check_source_addresses(config, &mut faults);
    check_listeners(config, &mut faults);
    faults
}

/// Checks that each of the `source_addresses` can be one, and is listed once.
fn check_source_addresses(config: &Config, faults: &mut Vec<ConfigFault>) {
    let addresses = &config.delivery.source_addresses;
    for (index, address) in addresses.iter().enumerate() {
        let text = if address.is_unspecified() || address.is_multicast() {
            format!("{address} cannot be a source address: name addresses of this machine")
        } else if addresses.iter().take(index).any(|previous| previous.to_canonical() == address.to_canonical()) {
            format!("{address} is listed twice: remove one")
        } else {
            continue;
        };
        faults.push(config_fault("delivery", "source_addresses", text));
    }
}

/// Checks keys that require or exclude each other.
fn check_combinations(config: &Config, faults: &mut Vec<ConfigFault>) {
    let tls = &config.tls;
    if tls.certificate.is_some() != tls.private_key.is_some() {
        let key = if tls.certificate.is_some() { "certificate" } else { "private_key" };
        faults.push(config_fault("tls", key, "[tls] requires both `certificate` and `private_key`"));
    }
    check_acme(config, faults);
    check_domain_connect(config, faults);
    let submission = &config.submission;
    let none = tls.certificate.is_none() && tls.acme.is_none();
    if none && !(submission.listen.is_empty() && submission.implicit_tls.is_empty()) {
        let text =
            "[submission] requires a certificate: set `certificate` and `private_key` in [tls], or use [tls.acme]";
        faults.push(config_fault("submission", "", text));
    }
    if none && !config.mx.listen.is_empty() {
        let text = "[mx] requires a certificate: set `certificate` and `private_key` in [tls], or use [tls.acme]";
        faults.push(config_fault("mx", "listen", text));
    }
    if config.mx.postmaster.is_some() && config.service.sandbox_sender.is_none() {
        let text = "`postmaster` requires `sandbox_sender` in [service]: mail is forwarded from its domain";
        faults.push(config_fault("mx", "postmaster", text));
    }
    if config.api.tls && none {
        let text = "`tls = true` in [api] requires a certificate: set both keys in [tls], or use [tls.acme]";
        faults.push(config_fault("api", "tls", text));
    }
    if config.store.engine == StoreEngine::Postgres && config.store.url.is_none() {
        let text = "`engine = \"postgres\"` requires `url = \"postgres://USER:PASSWORD@HOST/DATABASE\"`";
        faults.push(config_fault("store", "engine", text));
    }
    check_urls(config, faults);
    if config.sms.token.is_some() && config.sms.url.is_none() {
        faults.push(config_fault("sms", "token", "`token` requires `url`, to which text messages are posted"));
    }
    if config.conversions.token.is_some() && config.conversions.url.is_none() {
        faults.push(config_fault("conversions", "token", "`token` requires `url`, to which conversions are posted"));
    }
    let delivery = &config.delivery;
    if delivery.dkim2 == OnOff::On && !delivery.dkim {
        faults.push(config_fault("delivery", "dkim2", "`dkim2 = \"on\"` requires `dkim = true`"));
    }
    if delivery.smarthost_username.is_some() != delivery.smarthost_password.is_some() {
        let key = if delivery.smarthost_username.is_some() { "smarthost_username" } else { "smarthost_password" };
        faults.push(config_fault(
            "delivery",
            key,
            "`smarthost_username` requires `smarthost_password`, and vice versa",
        ));
    } else if delivery.smarthost_username.is_some() && delivery.smarthost.is_none() {
        let text = "`smarthost_username` requires `smarthost`, where it is used";
        faults.push(config_fault("delivery", "smarthost_username", text));
    }
    let smarthost = delivery.smarthost.as_ref();
    if let Some(text) = smarthost.and_then(|smarthost| smarthost.unverifiable_reason(delivery.tls)) {
        faults.push(config_fault("delivery", "smarthost", text));
    }
}

/// Checks all URLs: absolute, http or https, without user name and password.
fn check_urls(config: &Config, faults: &mut Vec<ConfigFault>) {
    let is_dashboard_path = |url: &&String| url.starts_with('/') && !url.starts_with("//");
    let upgrade_url = config.billing.upgrade_url.as_ref().filter(|url| !is_dashboard_path(url));
    let urls = [
        ("api", "base_url", config.api.base_url.as_ref(), "https://api.example.net"),
        ("ops", "console_url", config.ops.console_url.as_ref(), "https://ops.example.net"),
        ("billing", "upgrade_url", upgrade_url, "https://dashboard.example.net/billing"),
        ("sms", "url", config.sms.url.as_ref(), "https://sms.example.net/messages"),
        ("conversions", "url", config.conversions.url.as_ref(), "https://ads.example.net/conversions"),
        ("mx", "rspamd_url", Some(&config.mx.rspamd_url), "http://127.0.0.1:11333"),
    ];
    for (section, key, url, example) in urls {
        if let Some(fault) = url.and_then(|url| url_fault(url)) {
            faults.push(config_fault(section, key, format!("{fault} (example: {example:?})")));
        }
    }
    check_console_url(config, faults);
    // Paths are appended to it.
    if config.api.base_url.as_ref().is_some_and(|url| url_fault(url).is_none() && url.contains(['?', '#'])) {
        let text = "the URL must end with its host or path, without `?` and `#` (example: \"https://api.example.net\")";
        faults.push(config_fault("api", "base_url", text));
    }
}

/// Checks the URL of the console: its path is fixed, and its cookie must not cross a network without TLS.
fn check_console_url(config: &Config, faults: &mut Vec<ConfigFault>) {
    let Some(url) = config.ops.console_url.as_ref().filter(|url| url_fault(url).is_none()) else { return };
    let Ok(parsed) = url.parse::<http::Uri>() else { return };
    let host = parsed.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_loopback = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let text = if parsed.scheme_str() == Some("http") && !is_loopback {
        "the URL must begin with https://, because the session cookie crosses the network"
    } else if !matches!(parsed.path(), "" | "/") || url.contains(['?', '#']) {
        "the URL must end with its host: the console is at /console (example: \"https://ops.example.net\")"
    } else if config.ops.listen.is_empty() {
        "`console_url` requires `listen`, where the proxy reaches the console"
    } else {
        return;
    };
    faults.push(config_fault("ops", "console_url", text));
}

/// Checks `[tls.acme]`: no certificate files, a valid directory and contact, and a possible challenge method.
fn check_acme(config: &Config, faults: &mut Vec<ConfigFault>) {
    let Some(acme) = &config.tls.acme else { return };
    if config.tls.certificate.is_some() {
        let text = "[tls] has a certificate file and [tls.acme]: remove one of them";
        faults.push(config_fault("tls", "certificate", text));
    }
    let is_local = |url: &http::Uri| matches!(url.host(), Some("127.0.0.1" | "[::1]"));
    let directory = acme.directory.parse::<http::Uri>().ok().filter(|url| match url.scheme_str() {
        Some("https") => url.host().is_some(),
        Some("http") => is_local(url),
        _ => false,
    });
    if directory.is_none() {
        let text = "`directory` must be an https URL, or an http URL on 127.0.0.1 or [::1] (example: \
                    \"https://acme-v02.api.letsencrypt.org/directory\")";
        faults.push(config_fault("tls.acme", "directory", text));
    }
    if acme.contact.as_deref().is_some_and(|contact| {
        contact.strip_prefix("mailto:").unwrap_or(contact).parse::<message::address::Address>().is_err()
    }) {
        faults.push(config_fault(
            "tls.acme",
            "contact",
            "`contact` must be an email address (example: \"postmaster@example.net\")",
        ));
    }
    if crate::acme::challenge_methods(config).is_empty() {
        let text = "no challenge method is possible: set `http_listen = \"[::]:80\"` in [tls.acme], or let [api] listen \
                    on port 443 with `tls = true`";
        faults.push(config_fault("tls.acme", "", text));
    }
}

/// Checks ranges of values.
fn check_bounds(config: &Config, faults: &mut Vec<ConfigFault>) {
    let (submission, delivery) = (&config.submission, &config.delivery);
    let minimum_one = [
        ("submission", "message_bytes_max", submission.message_bytes_max == 0),
        ("submission", "sessions_max", submission.sessions_max == 0),
        ("submission", "sessions_per_address_max", submission.sessions_per_address_max == 0),
        ("mx", "message_bytes_max", config.mx.message_bytes_max == 0),
        ("mx", "sessions_per_address_max", config.mx.sessions_per_address_max == 0),
        ("mx", "connections_per_minute_max", config.mx.connections_per_minute_max == 0),
        ("mx", "errors_max", config.mx.errors_max == 0),
        ("api", "connections_per_address_max", config.api.connections_per_address_max == 0),
        ("delivery", "port", delivery.port == 0),
        ("testing", "mta_sts_port", config.testing.mta_sts_port == Some(0)),
        ("delivery", "tasks_in_memory_max", delivery.tasks_in_memory_max == 0),
        ("delivery", "body_bytes_in_memory_max", delivery.body_bytes_in_memory_max == 0),
    ];
    for (section, key, _) in minimum_one.into_iter().filter(|(_, _, is_zero)| *is_zero) {
        faults.push(config_fault(section, key, format!("`{key}` must be at least 1")));
    }
    let empty = [
        ("", "data_dir", config.data_dir.as_os_str().is_empty(), "the directory's path"),
        ("store", "cluster", config.store.cluster.trim().is_empty(), "the cluster's name"),
        ("submission", "username", submission.username.trim().is_empty(), "the user name of all logins"),
        (
            "billing",
            "stripe_webhook_secrets",
            // Anybody could sign with an empty secret.
            config.billing.stripe_webhook_secrets.iter().any(|secret| secret.0.trim().is_empty()),
            "the signing secrets of the webhook endpoint in Stripe",
        ),
    ];
    for (section, key, _, content) in empty.into_iter().filter(|(_, _, is_empty, _)| *is_empty) {
        faults.push(config_fault(section, key, format!("`{key}` is empty: set {content}, or remove the key")));
    }
    if !(1..=store::email::RECIPIENTS_MAX).contains(&submission.recipients_max) {
        let text = format!("`recipients_max` must be from 1 to {}", store::email::RECIPIENTS_MAX);
        faults.push(config_fault("submission", "recipients_max", text));
    }
    check_mx(config, faults);
    check_pairs(config, faults);
    if config.webhooks.retry.is_empty() || config.webhooks.retry.len() > WEBHOOK_ATTEMPTS_MAX {
        let text = format!("`retry` must have from 1 to {WEBHOOK_ATTEMPTS_MAX} delays, one before each attempt");
        faults.push(config_fault("webhooks", "retry", text));
    }
    if delivery.retry.iter().any(|wait| wait.as_secs() == 0) {
        faults.push(config_fault("delivery", "retry", "each delay in `retry` must be at least 1s"));
    }
    if delivery.give_up_after.as_secs() == 0 {
        faults.push(config_fault("delivery", "give_up_after", "`give_up_after` must be at least 1s"));
    }
    let service = &config.service;
    for (key, label, configured_host) in
        [("return_path_host", "rp", &service.return_path_host), ("spf_include_host", "spf", &service.spf_include_host)]
    {
        if configured_host.is_none() && config.hostname.child(label).is_err() {
            let text = format!("`hostname` is too long to prefix it with `{label}.`: set `{key}` in [service]");
            faults.push(config_fault("", "hostname", text));
        }
    }
    let is_label = |text: &String| {
        let is_valid = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        (1..=63).contains(&text.len()) && is_valid
    };
    if !is_label(&service.ownership_label) {
        let text = "`ownership_label` must be one DNS label, like \"_service\"";
        faults.push(config_fault("service", "ownership_label", text));
    }
}

/// Checks values that bound each other. A fault is reported at the first key that differs from its default: only the
/// other one may be in the file.
fn check_pairs(config: &Config, faults: &mut Vec<ConfigFault>) {
    let (submission, delivery) = (&config.submission, &config.delivery);
    let in_flight_max = submission.bytes_in_flight_max as u64;
    let is_in_flight_default = submission.bytes_in_flight_max == SubmissionSection::default().bytes_in_flight_max;
    if in_flight_max < submission.message_bytes_max {
        let key = if is_in_flight_default { "message_bytes_max" } else { "bytes_in_flight_max" };
        let text = "`bytes_in_flight_max` must be at least `message_bytes_max`: one message";
        faults.push(config_fault("submission", key, text));
    }
    if in_flight_max < config.mx.message_bytes_max {
        let is_default = config.mx.message_bytes_max == MxSection::default().message_bytes_max;
        let (section, key) =
            if is_default { ("submission", "bytes_in_flight_max") } else { ("mx", "message_bytes_max") };
        let text = "`message_bytes_max` in [mx] must not exceed `bytes_in_flight_max` in [submission]";
        faults.push(config_fault(section, key, text));
    }
    if config.store.retention < delivery.give_up_after {
        let is_default = config.store.retention == StoreSection::default().retention;
        let (section, key) = if is_default { ("delivery", "give_up_after") } else { ("store", "retention") };
        let text = "`retention` in [store] must not be shorter than `give_up_after` in [delivery]";
        faults.push(config_fault(section, key, text));
    }
}

/// Checks `[mx]`.
fn check_mx(config: &Config, faults: &mut Vec<ConfigFault>) {
    // RFC 5321 4.5.3.1.8.
    if !(1..=1_000).contains(&config.mx.recipients_max) {
        faults.push(config_fault("mx", "recipients_max", "`recipients_max` must be from 1 to 1000"));
    }
    if config.mx.dnsbl.len() > dns::authentication::blocklist::LISTS_MAX {
        let text = format!("`dnsbl` must have at most {} lists", dns::authentication::blocklist::LISTS_MAX);
        faults.push(config_fault("mx", "dnsbl", text));
    }
    // RFC 5321 4.5.3.2.1: clients wait five minutes for the greeting.
    if config.mx.greet_delay.as_secs() > 60 {
        faults.push(config_fault("mx", "greet_delay", "`greet_delay` must be at most 60s"));
    }
    let scores =
        [("rspamd_mark_score", config.mx.rspamd_mark_score), ("rspamd_reject_score", config.mx.rspamd_reject_score)];
    for (key, _) in scores.into_iter().filter(|(_, score)| score.is_some_and(|score| !score.is_finite())) {
        faults.push(config_fault("mx", key, format!("`{key}` must be a finite number")));
    }
}

fn reply_fault(section: &ReplySection) -> Option<(&'static str, String)> {
    let class = section.code.and_then(CodePattern::class);
    let words = section.text.as_deref().map(str::trim);
    match section.to_rule().map(|rule| rule.action) {
        Err(_) if section.action.is_empty() => {
            let text = "[[delivery.replies]] requires `action`: \"slow-down\", \"back-off\", \"pause\", \"permanent\" or \
                        \"temporary\"";
            Some(("", text.to_owned()))
        }
        Err(error) => Some(("action", error)),
        Ok(_) if section.code.is_none() && words.is_none() => {
            Some(("", "[[delivery.replies]] requires `code` or `text`, to select replies".to_owned()))
        }
        Ok(_) if words.is_some_and(|words| words.trim_matches('*').is_empty()) => {
            Some(("text", "`text` is empty and would match every reply".to_owned()))
        }
        Ok(ReplyAction::Temporary) if class == Some(4) => {
            Some(("action", "4yz replies are temporary already: remove the section".to_owned()))
        }
        Ok(ReplyAction::Permanent) if class == Some(5) => {
            Some(("action", "5yz replies are permanent already: remove the section".to_owned()))
        }
        Ok(ReplyAction::Pause(duration)) if duration.as_secs() == 0 => {
            Some(("for", "`for` must be at least 1s".to_owned()))
        }
        Ok(ReplyAction::Pause(duration)) if duration > SUSPENSION_MAX => {
            Some(("for", "`for` must be at most 1 day; to stop delivery, set `paused` in [delivery]".to_owned()))
        }
        Ok(_) => None,
    }
}

fn pace_faults(pace: &PaceSection) -> Vec<(&'static str, &'static str)> {
    let rate = pace.messages_per_second;
    let rules = [
        ("connections_max", pace.connections_max == 0, "`connections_max` must be at least 1"),
        ("messages_per_connection", pace.messages_per_connection == 0, "`messages_per_connection` must be at least 1"),
        (
            "messages_per_second",
            rate.is_some_and(|rate| !rate.is_finite() || rate <= 0.0),
            "`messages_per_second` must be more than 0; to stop delivery, set `paused`",
        ),
    ];
    rules.into_iter().filter(|(_, is_broken, _)| *is_broken).map(|(key, _, text)| (key, text)).collect()
}

/// Lists all listen addresses with their keys.
fn listen_addresses(config: &Config) -> Vec<(SocketAddr, ConfigFault)> {
    let sections = [
        ("submission", "listen", &config.submission.listen),
        ("submission", "implicit_tls", &config.submission.implicit_tls),
        ("mx", "listen", &config.mx.listen),
        ("api", "listen", &config.api.listen),
        ("ops", "listen", &config.ops.listen),
    ];
    let acme = config.tls.acme.iter().map(|acme| ("tls.acme", "http_listen", &acme.http_listen));
    let sections = sections.into_iter().chain(acme).map(|(section, key, listen)| (section, key, 0, listen));
    let relays = config.relay.iter().enumerate();
    sections
        .chain(relays.map(|(index, relay)| ("relay", "listen", index, &relay.listen)))
        .flat_map(|(section, key, index, listen)| {
            listen.iter().map(move |address| (*address, ConfigFault { section, index, key, text: String::new() }))
        })
        .collect()
}

fn check_listeners(config: &Config, faults: &mut Vec<ConfigFault>) {
    let listeners = listen_addresses(config);
    if listeners.is_empty() {
        let text = "no listener configured: set `listen` in [submission], [[relay]], [mx] or [api]";
        faults.push(config_fault("", "", text));
    }
    if config.testing.clock_offset.is_some()
        && let Some((public, _)) = listeners.iter().find(|(address, _)| !address.ip().is_loopback())
    {
        let text = format!("`clock_offset` requires all listeners on loopback, and {public} is not");
        faults.push(config_fault("testing", "clock_offset", text));
    }
    let mut checked: Vec<SocketAddr> = Vec::new();
    for (address, location) in listeners {
        if let Some(previous) = checked.iter().find(|previous| addresses_overlap(**previous, address)) {
            let text = if *previous == address {
                format!("{address} is configured twice: use another port")
            } else {
                format!("{address} overlaps with {previous}: use another port")
            };
            faults.push(ConfigFault { text, ..location });
        }
        checked.push(address);
    }
}

/// Checks the Domain Connect keys, which require each other and a template.
fn check_domain_connect(config: &Config, faults: &mut Vec<ConfigFault>) {
    let service = &config.service;
    if service.domain_connect_key.is_some() != service.domain_connect_key_name.is_some() {
        let has_key = service.domain_connect_key.is_some();
        let key = if has_key { "domain_connect_key" } else { "domain_connect_key_name" };
        let text = "`domain_connect_key` requires `domain_connect_key_name`, and vice versa";
        faults.push(config_fault("service", key, text));
    }
    if service.domain_connect_key.is_some() && service.domain_connect_template.is_none() {
        let text = "`domain_connect_key` signs requests for a template: set `domain_connect_template`";
        faults.push(config_fault("service", "domain_connect_key", text));
    }
}

/// Returns true if both addresses cannot be bound together. An unspecified IPv6 address may include IPv4, by a system
/// setting; that conflict shows when the listeners open.
fn addresses_overlap(left: SocketAddr, right: SocketAddr) -> bool {
    let is_unspecified = left.ip().is_unspecified() || right.ip().is_unspecified();
    let same_family = left.is_ipv4() == right.is_ipv4();
    left.port() != 0 && left.port() == right.port() && (left.ip() == right.ip() || is_unspecified && same_family)
}

/// Checks files, keys and directories on this machine.
pub(super) fn check_machine(config: &Config) -> Vec<ConfigFault> {
    let mut faults = Vec::new();
    check_certificate(config, &mut faults);
    let acme_roots = config.tls.acme.as_ref().and_then(|acme| acme.roots.as_deref());
    for (section, roots) in [("tls.acme", acme_roots), ("delivery", config.delivery.roots.as_deref())] {
        let Some(file) = roots else { continue };
        if let Some(reason) = read_error(file) {
            faults.push(config_fault(section, "roots", file_text(file, reason)));
        } else if let Err(error) = certificate::load_roots(file) {
            faults.push(config_fault(
                section,
                "roots",
                format!("{error}; the file must contain CA certificates in PEM"),
            ));
        }
    }
    if let Some(file) = &config.dns.trust_anchors {
        if let Some(reason) = read_error(file) {
            faults.push(config_fault("dns", "trust_anchors", file_text(file, reason)));
        } else if let Err(error) = dns::resolver::check_trust_anchors(file) {
            let example = ". 172800 IN DNSKEY 257 3 8 AwEAAa…";
            faults.push(config_fault("dns", "trust_anchors", format!("{error} (example of a line: {example:?})")));
        }
    }
    if let Some(database) = services::database(config) {
        let begins_with = |scheme| database.url.starts_with(scheme);
        if !begins_with("postgres://") && !begins_with("postgresql://") {
            let text = "the URL must begin with postgres:// (example: \"postgres://USER:PASSWORD@HOST:5432/DATABASE\")";
            faults.push(config_fault("store", "url", text));
        } else if let Err(error) = database.check_url() {
            faults.push(config_fault("store", "url", error));
        }
    }
    if let Some(file) = &config.service.domain_connect_key {
        if let Some(reason) = read_error(file) {
            faults.push(config_fault("service", "domain_connect_key", file_text(file, reason)));
        } else if let Err(error) = config.domain_connect_key() {
            faults.push(config_fault("service", "domain_connect_key", error));
        }
    }
    if let Some((directory, error)) = write_error(&config.data_dir) {
        faults.push(config_fault("", "data_dir", file_text(&directory, error)));
    }
    faults
}

/// Checks the certificate and private key of `[tls]`: both must be readable PEM, and belong together.
fn check_certificate(config: &Config, faults: &mut Vec<ConfigFault>) {
    let (Some(certificate), Some(private_key)) = (&config.tls.certificate, &config.tls.private_key) else { return };
    let certificate_fault = certificate_file_error(certificate).map(|text| config_fault("tls", "certificate", text));
    let key_fault = key_file_error(private_key).map(|text| config_fault("tls", "private_key", text));
    if certificate_fault.is_none()
        && key_fault.is_none()
        && let Err(error) =
            Certificate::from_pem_files(certificate, private_key).and_then(|pair| pair.server_config(Vec::new()))
    {
        faults.push(config_fault("tls", "certificate", error.to_string()));
    }
    faults.extend(certificate_fault.into_iter().chain(key_fault));
}

/// Returns the source addresses that this machine does not have (yet). These are notes: mail can still be accepted.
pub fn missing_source_addresses(config: &Config) -> Vec<IpAddr> {
    let addresses = config.delivery.all_source_addresses().into_iter().map(|(address, _)| address);
    let is_missing = |address: &IpAddr| {
        let socket = UdpSocket::bind((*address, 0));
        socket.is_err_and(|error| error.kind() == ErrorKind::AddrNotAvailable)
    };
    addresses.filter(is_missing).collect()
}

#[cfg(test)]
mod tests {
    use crate::config::from_text;

    fn problems(extra: &str) -> Vec<String> {
        let text = format!("hostname = \"mx.example.net\"\n[api]\nlisten = \"127.0.0.1:1\"\n{extra}");
        from_text(&text, []).err().unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn impossible_values_are_reported_with_their_line() {
        for (extra, expected) in [
            ("[submission]\nsessions_max = 0\n", "line 5: `sessions_max` must be at least 1"),
            ("[submission]\nusername = \"\"\n", "line 5: `username` is empty"),
            ("[store]\ncluster = \" \"\n", "line 5: `cluster` is empty"),
            ("[billing]\nstripe_webhook_secrets = \"\"\n", "line 5: `stripe_webhook_secrets` is empty"),
            ("[sms]\ntoken = \"x\"\n", "line 5: `token` requires `url`"),
            ("[testing]\nmta_sts_port = 0\n", "line 5: `mta_sts_port` must be at least 1"),
            ("[delivery]\nsource_addresses = \"::\"\n", "line 5: `source_addresses` in [delivery]: :: cannot be"),
            (
                "[delivery]\nsource_addresses = [\"192.0.2.1\", \"192.0.2.1\"]\n",
                "line 5: `source_addresses` in [delivery]: 192.0.2.1 is listed twice",
            ),
            (
                "[tls.acme]\nhttp_listen = \"127.0.0.1:80\"\ndirectory = \"http://127.0.0.1.example.net/\"\n",
                "line 6: `directory` must be an https URL",
            ),
            (
                "[delivery]\n[[delivery.pace]]\n[[delivery.pace]]\nmail_host = \"b\"\nconnections_max = 0\n",
                "line 8: `connections_max`",
            ),
            (
                "[[delivery.pace]]\n[[delivery.pace]]\n",
                "line 5: `mail_host` in [[delivery.pace]]: a second [[delivery.pace]] for all other hosts",
            ),
            (
                "[[delivery.pace]]\nmail_host = \"b\"\n[[delivery.pace]]\nmail_host = \"B\"\n",
                "line 7: `mail_host` in [[delivery.pace]]: a second [[delivery.pace]] for `b`",
            ),
            (
                "[[delivery.replies]]\naction = \"stop\"\ntext = \"x\"\n",
                "line 5: `action` in [[delivery.replies]]: unknown action `stop`",
            ),
            ("[[delivery.replies]]\naction = \"back-off\"\n", "line 4: [[delivery.replies]] requires"),
            (
                "[[delivery.replies]]\naction = \"temporary\"\ncode = \"4yz\"\n",
                "line 5: `action` in [[delivery.replies]]: 4yz replies are temporary",
            ),
            (
                "[[delivery.replies]]\naction = \"pause\"\ncode = \"250\"\n",
                "line 6: `code` in [[delivery.replies]]: `250` is not a",
            ),
            (
                "[[delivery.replies]]\naction = \"pause\"\ntext = \"x\"\nfor = \"0s\"\n",
                "line 7: `for` must be at least",
            ),
            (
                "[[delivery.replies]]\naction = \"pause\"\ncode = \"5.7.649-606\"\n",
                "line 6: `code` in [[delivery.replies]]: `5.7.649-606` is not a valid code: the range is empty",
            ),
            ("[[delivery.pace]]\nmessages_per_second = -1.0\n", "line 5: `messages_per_second`"),
            ("[[delivery.pace]]\nmessages_per_second = 0.0\n", "line 5: `messages_per_second`"),
            ("[store]\nretention = \"1h\"\n", "line 5: `retention`"),
            (
                "[[relay]]\nlisten = \"127.0.0.1:2\"\nnetworks = []\naccount = \"a\"\n",
                "line 6: [[relay]] requires `networks`",
            ),
            ("[[relay]]\nlisten = \"127.0.0.1:2\"\nnetworks = \"::1\"\n", "line 4: [[relay]] requires `account`"),
            (
                "[ops]\nlisten = [\"127.0.0.1:9\", \"127.0.0.1:9\"]\n",
                "line 5: `listen` in [ops]: 127.0.0.1:9 is configured twice",
            ),
            ("[ops]\nlisten = [\"0.0.0.0:1\"]\n", "line 5: `listen` in [ops]: 0.0.0.0:1 overlaps with 127.0.0.1:1"),
        ] {
            let found = problems(extra);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{extra}{found:#?}");
        }
        assert!(problems("[ops]\nlisten = [\"127.0.0.1:0\", \"127.0.0.1:0\", \"[::]:1\"]\n").is_empty());
    }

    #[test]
    fn a_fault_of_two_keys_is_reported_at_the_one_in_the_file() {
        for (extra, expected) in [
            ("[delivery]\ngive_up_after = \"1000000d\"\n", "line 5: `retention` in [store] must not be shorter"),
            ("[store]\nretention = \"1h\"\n", "line 5: `retention` in [store] must not be shorter"),
            (
                "[submission]\nmessage_bytes_max = 1000000000000\n",
                "line 5: `bytes_in_flight_max` must be at least `message_bytes_max`",
            ),
            (
                "[submission]\nmessage_bytes_max = 1000\nbytes_in_flight_max = 1000\n",
                "line 6: `message_bytes_max` in [mx] must not exceed",
            ),
            ("[mx]\nmessage_bytes_max = 1000000000000\n", "line 5: `message_bytes_max` in [mx] must not exceed"),
            ("[service]\ndomain_connect_key_name = \"k\"\n", "line 5: `domain_connect_key` requires"),
        ] {
            let found = problems(extra);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{extra}{found:#?}");
        }
        let label = "a".repeat(60);
        let text = format!("hostname = \"{label}.{label}.{label}.{label}.example\"\n[api]\nlisten = \"127.0.0.1:1\"\n");
        let found: Vec<String> =
            from_text(&text, []).err().unwrap_or_default().iter().map(ToString::to_string).collect();
        assert!(found.iter().any(|problem| problem.starts_with("line 1: `hostname` is too long")), "{found:#?}");
    }

    #[test]
    fn unused_smarthosts_are_reported() {
        let block = |name: &str, extra: &str| {
            format!("[[delivery.smarthosts]]\nname = \"{name}\"\nhosts = \"relay.example.net:587\"\n{extra}")
        };
        let all = "[delivery]\nsmarthost = \"relay.example.net:25\"\n";
        let (fail_over, com) = ("when = \"fail-over\"\n", "domains = [\"example.com\"]\n");
        for (extra, expected) in [
            (
                "[delivery]\nsmarthost = \"relay.example.net:0\"\n".to_owned(),
                "line 5: `smarthost` in [delivery]: port 0 in",
            ),
            (
                "[[delivery.smarthosts]]\nname = \"a\"\nhosts = [\"192.0.2.1:0\"]\n".to_owned(),
                "line 6: `hosts` in [[delivery.smarthosts]]: port 0 in `192.0.2.1:0` is invalid",
            ),
            (
                block("a", com) + &block("b", com),
                "line 11: `domains` in [[delivery.smarthosts]]: `a` already takes the mail of `example.com`",
            ),
            (
                all.to_owned() + &block("a", "domains = \"*\"\n"),
                "line 9: `domains` in [[delivery.smarthosts]]: `smarthost` in [delivery] already takes the mail of `*`",
            ),
            (block("a", fail_over), "line 7: `when = \"fail-over\"` requires `domains`"),
            (
                block("a", com) + &block("b", &(com.to_owned() + fail_over)),
                "line 11: `domains` in [[delivery.smarthosts]]: `a` always takes the mail of `example.com`",
            ),
            (
                block("a", "domains = \"*.example.com\"\n")
                    + &block("b", &format!("domains = \"*.x.example.com\"\n{fail_over}")),
                "line 11: `domains` in [[delivery.smarthosts]]: `a` always takes the mail of `*.x.example.com`",
            ),
            (
                all.to_owned() + &block("a", &(com.to_owned() + fail_over)),
                "line 9: `domains` in [[delivery.smarthosts]]: `smarthost` in [delivery] always takes all mail",
            ),
            (
                all.to_owned() + &block("smarthost", com),
                "line 7: `name` in [[delivery.smarthosts]]: `smarthost` is the name of the one in [delivery]",
            ),
            (
                block("a", "") + &block("a", ""),
                "line 8: `name` in [[delivery.smarthosts]]: `a` is the name of another smarthost",
            ),
            (
                "[[delivery.smarthosts]]\nname = \"a\"\nhosts = \"192.0.2.1:25\"\ntls = \"verified\"\n".to_owned(),
                "line 6: `hosts` in [[delivery.smarthosts]]: `tls = \"verified\"` requires a certificate",
            ),
            (
                "[delivery]\nsmarthost_username = \"a\"\nsmarthost_password = \"b\"\n".to_owned(),
                "line 5: `smarthost_username` requires `smarthost`",
            ),
        ] {
            let found = problems(&extra);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{extra}{found:#?}");
        }
        let subdomains = "domains = \"*.example.com\"\n";
        for valid in [
            block("smarthost", com),
            block("a", com) + &block("b", &(subdomains.to_owned() + fail_over)),
            all.to_owned() + &block("a", com) + &block("b", ""),
        ] {
            assert_eq!(problems(&valid), Vec::<String>::new(), "{valid}");
        }
    }

    #[test]
    fn service_hosts_default_to_names_below_the_host_name() {
        let parse = |hostname: &str, extra: &str| {
            from_text(&format!("hostname = \"{hostname}\"\n[api]\nlisten = \"127.0.0.1:1\"\n{extra}"), [])
        };
        let defaults = parse("mx1.example.net", "").unwrap();
        assert_eq!(defaults.return_path_host().as_str(), "rp.mx1.example.net");
        assert_eq!(defaults.spf_include_host().as_str(), "spf.mx1.example.net");
        let service_section =
            "[service]\nreturn_path_host = \"Bounces.example.net.\"\nspf_include_host = \"_spf.example.net\"\n";
        let named = parse("mx1.example.net", service_section).unwrap();
        assert_eq!(named.return_path_host().as_str(), "bounces.example.net");
        assert_eq!(named.spf_include_host().as_str(), "_spf.example.net");
        let long = [["a"; 125].join("."), "ab".to_owned()].join(".");
        let found = parse(&long, "").unwrap_err();
        assert!(found.len() == 2 && found[0].text.contains("`return_path_host`"), "{found:?}");
        assert!(parse(&long, service_section).is_ok());
        assert!(problems("[service]\nreturn_path_host = \"x y\"\n")[0].starts_with("line 5: "));
    }
}
