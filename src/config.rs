//! The configuration file as structs. `etc/postrider.toml` documents every key with its default; a test compares
//! them.
//!
//! [`read`] reads the file and reports each problem with its line. The environment (`POSTRIDER_SECTION_KEY`) overrides
//! the file. [`check`] finds contradictory and impossible values.

mod check;
mod explain;
mod fault;
mod files;
pub mod log;
pub mod mx;
mod plans;
pub mod pools;
mod read;
pub mod smarthosts;
mod url;
mod values;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use message::address::{Address, DomainName};
use message::classify::{CodePattern, ReplyAction, ReplyRule, TextPattern};
use model::account::Plan;
use model::cidr::IpNetwork;
use model::plan::Plans;
use provider::{DomainConnectTemplate, RequestKey};
use queue::pacing::PaceLimits;
use queue::retry_schedule::RetrySchedule;
use serde::Deserialize;
use smtp::limits::SessionLimits;

pub use check::missing_source_addresses;
use log::LogSection;
use mx::MxSection;
use pools::PoolSection;
pub use read::{ConfigProblem, environment, find_line, from_file, from_file_alone, from_text};
use smarthosts::SmarthostSection;
pub(crate) use values::read_duration;
pub use values::{DaneMode, OnOff, OutgoingTlsMode as TlsChoice, SecretString, SmarthostAddress, StoreEngine};
use values::{duration, durations, one_or_many, parsed};

/// The whole configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Host name of this server in greetings, EHLO and reports. Forward and reverse DNS must match its address.
    #[serde(deserialize_with = "parsed::host_name")]
    pub hostname: DomainName,
    /// Directory of all data.
    #[serde(default = "default_data_dir")]
    pub data_dir: PathBuf,
    #[serde(default)]
    pub store: StoreSection,
    #[serde(default)]
    pub tls: TlsSection,
    #[serde(default)]
    pub submission: SubmissionSection,
    /// Trusted hosts that submit mail without AUTH.
    #[serde(default)]
    pub relay: Vec<RelaySection>,
    #[serde(default)]
    pub mx: MxSection,
    /// Load balancers in front of this server.
    #[serde(default)]
    pub proxy: ProxySection,
    #[serde(default)]
    pub api: ApiSection,
    #[serde(default)]
    pub ops: OpsSection,
    #[serde(default)]
    pub log: LogSection,
    #[serde(default)]
    pub dns: DnsSection,
    #[serde(default)]
    pub delivery: DeliverySection,
    #[serde(default)]
    pub webhooks: WebhooksSection,
    #[serde(default)]
    pub service: ServiceSection,
    #[serde(default)]
    pub conversions: ConversionsSection,
    #[serde(default)]
    pub sms: SmsSection,
    #[serde(default)]
    pub billing: BillingSection,
    /// Quotas and limits of each plan.
    #[serde(default, deserialize_with = "plans::plans")]
    pub plans: Plans,
    #[serde(default)]
    pub testing: TestingSection,
    /// Environment variables with the prefix `POSTRIDER_` that are not settings.
    #[serde(skip)]
    pub ignored_variables: Vec<String>,
}

impl Config {
    /// Host of return paths (`MAIL FROM`): `rp.{domain}` of each sending domain is a CNAME to it. Default: `rp.` before
    /// `hostname`.
    pub fn return_path_host(&self) -> DomainName {
        self.service.return_path_host.clone().unwrap_or_else(|| self.subdomain("rp"))
    }

    /// Loads the key that signs Domain Connect requests, if configured.
    pub fn domain_connect_key(&self) -> Result<Option<RequestKey>, String> {
        let (Some(file), Some(name)) = (&self.service.domain_connect_key, &self.service.domain_connect_key_name) else {
            return Ok(None);
        };
        let to_text = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let pem = std::fs::read_to_string(file).map_err(|error| to_text(&error))?;
        RequestKey::new(&pem, name).map(Some).map_err(|error| to_text(&error))
    }

    /// Name whose SPF record lists this server's sending addresses (RFC 7208 5.2). Each sending domain's record
    /// includes it. Default: `spf.` before `hostname`.
    pub fn spf_include_host(&self) -> DomainName {
        self.service.spf_include_host.clone().unwrap_or_else(|| self.subdomain("spf"))
    }

    /// Label below a sending domain where its ownership record is published.
    pub fn ownership_label(&self) -> &str {
        &self.service.ownership_label
    }

    /// A name below `hostname`. [`check`] has refused a `hostname` that is too long for one.
    fn subdomain(&self, label: &str) -> DomainName {
        self.hostname.child(label).unwrap_or_else(|_| self.hostname.clone())
    }
}

fn default_data_dir() -> PathBuf {
    PathBuf::from("/var/lib/postrider")
}

/// `[store]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreSection {
    pub engine: StoreEngine,
    /// URL of the PostgreSQL database. It may contain a password.
    pub url: Option<SecretString>,
    /// Name of the cluster within the database.
    pub cluster: String,
    /// Disk space reserved so that delivery continues when the disk is full, in bytes.
    pub reserve_bytes: u64,
    /// How long emails, their messages and their history are retained.
    #[serde(deserialize_with = "duration")]
    pub retention: Duration,
}

impl Default for StoreSection {
    fn default() -> Self {
        const DAY: u64 = 24 * 3600;
        Self {
            engine: StoreEngine::default(),
            url: None,
            cluster: "postrider".to_owned(),
            reserve_bytes: 64 << 20,
            retention: Duration::from_secs(30 * DAY),
        }
    }
}

/// `[tls]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsSection {
    /// PEM file of the certificate chain.
    pub certificate: Option<PathBuf>,
    /// PEM file of its private key.
    pub private_key: Option<PathBuf>,
    /// ACME, instead of files.
    pub acme: Option<AcmeSection>,
}

/// `[tls.acme]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcmeSection {
    /// URL of the authority's directory (RFC 8555 7.1.1).
    pub directory: String,
    /// Email address of the ACME account.
    pub contact: Option<String>,
    /// Names in addition to `hostname` and the API's host.
    #[serde(deserialize_with = "parsed::host_names")]
    pub names: Vec<DomainName>,
    /// Addresses of the HTTP-01 listener.
    #[serde(deserialize_with = "one_or_many")]
    pub http_listen: Vec<SocketAddr>,
    /// PEM file of CA certificates that sign the directory's certificate; none means the public CAs.
    pub roots: Option<PathBuf>,
}

impl Default for AcmeSection {
    fn default() -> Self {
        Self {
            directory: instant_acme::LetsEncrypt::Production.url().to_owned(),
            contact: None,
            names: Vec::new(),
            http_listen: Vec::new(),
            roots: None,
        }
    }
}

/// `[submission]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SubmissionSection {
    /// Listeners with STARTTLS.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// Listeners with implicit TLS (RFC 8314).
    #[serde(deserialize_with = "one_or_many")]
    pub implicit_tls: Vec<SocketAddr>,
    /// The user name of all logins; the password is an SMTP credential.
    pub username: String,
    /// Maximum message size, in bytes.
    pub message_bytes_max: u64,
    /// Maximum recipients of a message.
    pub recipients_max: usize,
    /// Maximum sessions of all listeners.
    pub sessions_max: usize,
    /// Maximum sessions of one client address.
    pub sessions_per_address_max: usize,
    /// Maximum message content in memory over all sessions, in bytes.
    pub bytes_in_flight_max: usize,
}

impl Default for SubmissionSection {
    fn default() -> Self {
        let limits = SessionLimits::default();
        Self {
            listen: Vec::new(),
            implicit_tls: Vec::new(),
            username: "postrider".to_owned(),
            message_bytes_max: limits.message_bytes_max,
            recipients_max: limits.recipients_max,
            sessions_max: smtp::connection_limiter::SESSIONS_MAX_DEFAULT,
            sessions_per_address_max: limits.sessions_per_address_max,
            bytes_in_flight_max: smtp::content_budget::ContentBudget::BYTES_DEFAULT,
        }
    }
}

/// `[[relay]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySection {
    /// Listen addresses. Required, as the other keys; checked after parsing, to report all problems together.
    #[serde(default, deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// Networks of the permitted clients.
    #[serde(default, deserialize_with = "one_or_many")]
    pub networks: Vec<IpNetwork>,
    /// Account of the submitted mail: its id or its owner's address.
    #[serde(default)]
    pub account: String,
}

/// `[proxy]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxySection {
    /// Networks of load balancers, whose connections begin with a PROXY header.
    #[serde(deserialize_with = "one_or_many")]
    pub networks: Vec<IpNetwork>,
}

/// `[api]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiSection {
    /// Listen addresses.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// URL by which customers reach the API; appears in the OpenAPI document.
    pub base_url: Option<String>,
    /// True: listeners use TLS. False: a reverse proxy terminates TLS.
    pub tls: bool,
    /// On: requests are counted and limited by the plans.
    pub rate_limit: OnOff,
    /// Maximum connections of one client address.
    pub connections_per_address_max: usize,
    /// Networks of reverse proxies whose forwarding headers are trusted.
    #[serde(deserialize_with = "one_or_many")]
    pub forwarding_networks: Vec<IpNetwork>,
}

impl Default for ApiSection {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            base_url: None,
            tls: false,
            rate_limit: OnOff::default(),
            connections_per_address_max: api::state::CONNECTIONS_PER_ADDRESS_MAX,
            forwarding_networks: Vec::new(),
        }
    }
}

/// `[ops]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpsSection {
    /// Addresses of `/metrics`, `/healthz` and the operator's console.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// URL at which a proxy publishes the console. Without it, only listeners on loopback have one.
    pub console_url: Option<String>,
}

/// `[sms]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmsSection {
    /// URL of the provider that sends text messages; none disables them.
    pub url: Option<String>,
    /// Bearer token.
    pub token: Option<SecretString>,
    /// Sender: a number or a name.
    pub from: Option<String>,
}

/// `[billing]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BillingSection {
    /// Page where an account is upgraded, for refusals: a path on the dashboard, or a URL. None: refusals name none.
    pub upgrade_url: Option<String>,
    /// Signing secrets of the operator's payment processor; two during a rotation.
    #[serde(deserialize_with = "one_or_many")]
    pub stripe_webhook_secrets: Vec<SecretString>,
}

/// `[dns]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DnsSection {
    /// Name servers; none means the system's.
    #[serde(deserialize_with = "parsed::servers")]
    pub servers: Vec<SocketAddr>,
    /// File of DNSKEY records that are trust anchors for DNSSEC; none means the keys of the public root.
    pub trust_anchors: Option<PathBuf>,
    /// Timeout of a lookup. Set by `postrider dev`, not by the file.
    #[serde(skip)]
    pub deadline: Option<Duration>,
}

/// `[delivery]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeliverySection {
    /// Port of mail hosts.
    pub port: u16,
    /// Local addresses to send from; if empty, the system chooses.
    #[serde(deserialize_with = "one_or_many")]
    pub source_addresses: Vec<IpAddr>,
    /// Delays between attempts; the last one repeats.
    #[serde(deserialize_with = "durations")]
    pub retry: Vec<Duration>,
    /// Age at which a message is returned as undeliverable.
    #[serde(deserialize_with = "duration")]
    pub give_up_after: Duration,
    /// TLS requirement for outgoing connections.
    pub tls: TlsChoice,
    /// Applies MTA-STS policies of recipient domains (RFC 8461).
    pub mta_sts: OnOff,
    /// Applies TLSA records of mail hosts (RFC 7672).
    pub dane: DaneMode,
    /// PEM file of CA certificates for verified connections; none means the public CAs.
    pub roots: Option<PathBuf>,
    /// Contact address in TLS reports (RFC 8460); its domain is the reporting organisation. If set, reports are sent to
    /// the domains that request them; otherwise none are sent.
    #[serde(deserialize_with = "parsed::address_option")]
    pub tls_report_contact: Option<Address>,
    /// Smarthost for all mail.
    pub smarthost: Option<SmarthostAddress>,
    /// User name at the smarthost.
    pub smarthost_username: Option<String>,
    /// Password at the smarthost.
    pub smarthost_password: Option<SecretString>,
    /// Permits delivery to private and loopback addresses.
    pub allow_private_destinations: bool,
    /// Accepts mail but delivers none.
    pub paused: bool,
    /// Signs mail with DKIM.
    pub dkim: bool,
    /// Also signs each transaction (DKIM2).
    pub dkim2: OnOff,
    /// Maximum number of tasks in memory.
    pub tasks_in_memory_max: usize,
    /// Maximum size of message bodies in memory, in bytes.
    pub body_bytes_in_memory_max: usize,
    /// Connection and rate limits by destination.
    pub pace: Vec<PaceSection>,
    /// Reply rules, applied before the built-in rules.
    pub replies: Vec<ReplySection>,
    /// Smarthosts for some of the mail.
    pub smarthosts: Vec<SmarthostSection>,
    /// Pools of source addresses for some accounts.
    pub pools: Vec<PoolSection>,
}

impl Default for DeliverySection {
    fn default() -> Self {
        let RetrySchedule { waits, give_up_after } = RetrySchedule::default();
        Self {
            port: 25,
            source_addresses: Vec::new(),
            retry: waits,
            give_up_after,
            tls: TlsChoice::default(),
            mta_sts: OnOff::On,
            dane: DaneMode::default(),
            roots: None,
            tls_report_contact: None,
            smarthost: None,
            smarthost_username: None,
            smarthost_password: None,
            allow_private_destinations: false,
            paused: false,
            dkim: true,
            dkim2: OnOff::Off,
            tasks_in_memory_max: 50_000,
            body_bytes_in_memory_max: 256 << 20,
            pace: Vec::new(),
            replies: Vec::new(),
            smarthosts: Vec::new(),
            pools: Vec::new(),
        }
    }
}

/// `[[delivery.pace]]`
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaceSection {
    /// Name of a mail host, or a domain above it; none applies to all other hosts.
    #[serde(default, deserialize_with = "parsed::host_name_option")]
    pub mail_host: Option<DomainName>,
    /// Maximum number of connections.
    #[serde(default = "PaceSection::connections_max")]
    pub connections_max: u32,
    /// Maximum number of messages per connection.
    #[serde(default = "PaceSection::messages_per_connection")]
    pub messages_per_connection: u32,
    /// Maximum messages per second; none is unlimited.
    pub messages_per_second: Option<f64>,
}

impl PaceSection {
    fn connections_max() -> u32 {
        PaceLimits::default().connections_max
    }

    fn messages_per_connection() -> u32 {
        PaceLimits::default().messages_per_connection
    }

    /// Converts to the queue's limits.
    pub fn to_pace_limits(&self) -> PaceLimits {
        PaceLimits {
            connections_start: PaceLimits::default().connections_start.min(self.connections_max),
            connections_max: self.connections_max,
            messages_per_connection: self.messages_per_connection,
            messages_per_second: self.messages_per_second,
        }
    }
}

/// `[[delivery.replies]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplySection {
    /// Name of a mail host, or a domain above it; none applies to every host.
    #[serde(default, deserialize_with = "parsed::host_name_option")]
    pub provider: Option<DomainName>,
    /// Reply code or enhanced status code.
    #[serde(default, deserialize_with = "parsed::code_option")]
    pub code: Option<CodePattern>,
    /// Pattern of the reply's text.
    pub text: Option<String>,
    /// Name of the action. Required; checked after parsing, to report all problems together.
    #[serde(default)]
    pub action: String,
    /// Duration of the action.
    #[serde(default, rename = "for", deserialize_with = "values::duration_option")]
    pub duration: Option<Duration>,
}

impl ReplySection {
    /// Converts to the queue's rule.
    ///
    /// # Errors
    /// The action does not exist, or does not accept the duration.
    pub fn to_rule(&self) -> Result<ReplyRule, String> {
        Ok(ReplyRule {
            provider: self.provider.clone(),
            code: self.code,
            text: self.text.as_deref().map(TextPattern::new),
            action: ReplyAction::parse(&self.action, self.duration)?,
        })
    }
}

/// `[webhooks]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhooksSection {
    /// Permits endpoints at private addresses.
    pub allow_private_destinations: bool,
    /// Permits endpoints without TLS.
    pub allow_http: bool,
    /// Delays before each attempt, including the first.
    #[serde(deserialize_with = "durations")]
    pub retry: Vec<Duration>,
}

impl Default for WebhooksSection {
    fn default() -> Self {
        Self { allow_private_destinations: false, allow_http: false, retry: queue::webhooks::RETRY_SCHEDULE.to_vec() }
    }
}

/// `[service]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceSection {
    /// Shared sender of accounts that have no verified domain.
    #[serde(deserialize_with = "parsed::address_option")]
    pub sandbox_sender: Option<Address>,
    /// Marks new domains as verified without checking DNS (development).
    pub auto_verify_domains: bool,
    /// Default plan of accounts that the operator creates.
    pub default_plan: Plan,
    /// Target of the CNAME at `rp` of a customer's domain; see [`Config::return_path_host`].
    #[serde(deserialize_with = "parsed::host_name_option")]
    pub return_path_host: Option<DomainName>,
    /// Name that a customer's SPF record includes; see [`Config::spf_include_host`].
    #[serde(deserialize_with = "parsed::host_name_option")]
    pub spf_include_host: Option<DomainName>,
    /// Label of the ownership record of a customer's domain; see [`Config::ownership_label`].
    pub ownership_label: String,
    /// Template registered with DNS providers for Domain Connect.
    #[serde(deserialize_with = "parsed::template_option")]
    pub domain_connect_template: Option<DomainConnectTemplate>,
    /// PEM file of the key that signs Domain Connect requests.
    pub domain_connect_key: Option<PathBuf>,
    /// Name where its public key is published.
    #[serde(deserialize_with = "parsed::host_name_option")]
    pub domain_connect_key_name: Option<DomainName>,
}

impl Default for ServiceSection {
    fn default() -> Self {
        Self {
            sandbox_sender: None,
            auto_verify_domains: false,
            default_plan: Plan::Dedicated,
            return_path_host: None,
            spf_include_host: None,
            ownership_label: "_service".to_owned(),
            domain_connect_template: None,
            domain_connect_key: None,
            domain_connect_key_name: None,
        }
    }
}

/// `[conversions]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConversionsSection {
    /// URL that conversions are posted to; none disables them.
    pub url: Option<String>,
    /// Bearer token.
    pub token: Option<SecretString>,
    /// Includes the SHA-256 of the person's email address.
    pub email_hash: bool,
}

/// `[testing]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TestingSection {
    /// The clock runs ahead by this duration, and `admin clock advance` is permitted. All listeners must be on
    /// loopback.
    #[serde(deserialize_with = "values::duration_option")]
    pub clock_offset: Option<Duration>,
    /// Port of web servers with MTA-STS policies.
    pub mta_sts_port: Option<u16>,
}
