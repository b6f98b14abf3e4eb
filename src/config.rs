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
mod section;
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
use queue::delivery::client::smtp::TlsSecurityLevel;
use queue::delivery::retry_schedule::RetrySchedule;
use queue::scheduler::pacing::PaceLimits;
use serde::Deserialize;
use smtp::limits::SessionLimits;

pub use check::missing_source_addresses;
use log::LogSection;
use mx::MxSection;
use pools::PoolSection;
pub use read::{ConfigProblem, environment, find_line, from_file, from_file_alone, from_text};
use section::section;
use smarthosts::SmarthostSection;
pub(crate) use values::read_duration;
pub use values::{DaneMode, OnOff, SecretString, SmarthostAddress, StoreEngine};
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

section! {
    /// `[store]`
    StoreSection in store {
        engine: StoreEngine,
        /// URL of the PostgreSQL database. It may contain a password.
        url: Option<SecretString>,
        /// Name of the cluster within the database.
        cluster: String = "postrider".to_owned(),
        /// Disk space reserved so that delivery continues when the disk is full, in bytes.
        reserve_bytes: u64 = 64 << 20,
        /// How long emails, their messages and their history are retained.
        #[serde(deserialize_with = "duration")]
        @live retention: Duration = Duration::from_secs(30 * 24 * 3600),
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

section! {
    /// `[tls.acme]`
    #[derive(PartialEq, Eq)]
    AcmeSection {
        /// URL of the authority's directory (RFC 8555 7.1.1).
        directory: String = instant_acme::LetsEncrypt::Production.url().to_owned(),
        /// Email address of the ACME account.
        contact: Option<String>,
        /// Names in addition to `hostname` and the API's host.
        #[serde(deserialize_with = "parsed::host_names")]
        names: Vec<DomainName>,
        /// Addresses of the HTTP-01 listener.
        #[serde(deserialize_with = "one_or_many")]
        http_listen: Vec<SocketAddr>,
        /// PEM file of CA certificates that sign the directory's certificate; none means the public CAs.
        roots: Option<PathBuf>,
    }
}

section! {
    /// `[submission]`
    SubmissionSection in submission {
        /// Listeners with STARTTLS.
        #[serde(deserialize_with = "one_or_many")]
        listen: Vec<SocketAddr>,
        /// Listeners with implicit TLS (RFC 8314).
        #[serde(deserialize_with = "one_or_many")]
        implicit_tls: Vec<SocketAddr>,
        /// The user name of all logins; the password is an SMTP credential.
        username: String = "postrider".to_owned(),
        /// Maximum message size, in bytes.
        @live message_bytes_max: u64 = SessionLimits::default().message_bytes_max,
        /// Maximum recipients of a message.
        @live recipients_max: usize = SessionLimits::default().recipients_max,
        /// Maximum sessions of all listeners.
        @live sessions_max: usize = smtp::connection_limiter::SESSIONS_MAX_DEFAULT,
        /// Maximum sessions of one client address.
        @live sessions_per_address_max: usize = SessionLimits::default().sessions_per_address_max,
        /// Maximum message content in memory over all sessions, in bytes.
        @live bytes_in_flight_max: usize = smtp::content_budget::ContentBudget::BYTES_DEFAULT,
    }
}

section! {
    /// `[[relay]]`
    #[derive(PartialEq, Eq)]
    RelaySection {
        /// Listen addresses. Required, as the other keys; checked after parsing, to report all problems together.
        #[serde(deserialize_with = "one_or_many")]
        listen: Vec<SocketAddr>,
        /// Networks of the permitted clients.
        #[serde(deserialize_with = "one_or_many")]
        networks: Vec<IpNetwork>,
        /// Account of the submitted mail: its id or its owner's address.
        account: String,
    }
}

section! {
    /// `[proxy]`
    ProxySection in proxy {
        /// Networks of load balancers, whose connections begin with a PROXY header.
        #[serde(deserialize_with = "one_or_many")]
        networks: Vec<IpNetwork>,
    }
}

section! {
    /// `[api]`
    ApiSection in api {
        /// Listen addresses.
        #[serde(deserialize_with = "one_or_many")]
        listen: Vec<SocketAddr>,
        /// URL by which customers reach the API; appears in the OpenAPI document.
        base_url: Option<String>,
        /// True: listeners use TLS. False: a reverse proxy terminates TLS.
        tls: bool,
        /// On: requests are counted and limited by the plans.
        @live rate_limit: OnOff,
        /// Maximum connections of one client address.
        connections_per_address_max: usize = api::state::CONNECTIONS_PER_ADDRESS_MAX,
        /// Networks of reverse proxies whose forwarding headers are trusted.
        #[serde(deserialize_with = "one_or_many")]
        forwarding_networks: Vec<IpNetwork>,
    }
}

section! {
    /// `[ops]`
    OpsSection in ops {
        /// Addresses of `/metrics`, `/healthz` and the operator's console.
        #[serde(deserialize_with = "one_or_many")]
        listen: Vec<SocketAddr>,
        /// URL at which a proxy publishes the console. Without it, only listeners on loopback have one.
        console_url: Option<String>,
    }
}

section! {
    /// `[sms]`
    SmsSection in sms {
        /// URL of the provider that sends text messages; none disables them.
        url: Option<String>,
        /// Bearer token.
        token: Option<SecretString>,
        /// Sender: a number or a name.
        from: Option<String>,
    }
}

section! {
    /// `[billing]`
    BillingSection in billing {
        /// Page where an account is upgraded, for refusals: a path on the dashboard, or a URL. None: refusals name
        /// none.
        upgrade_url: Option<String>,
        /// Signing secrets of the operator's payment processor; two during a rotation.
        #[serde(deserialize_with = "one_or_many")]
        stripe_webhook_secrets: Vec<SecretString>,
    }
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

section! {
    /// `[delivery]`
    DeliverySection in delivery {
        /// Port of mail hosts.
        port: u16 = 25,
        /// Local addresses to send from; if empty, the system chooses.
        #[serde(deserialize_with = "one_or_many")]
        source_addresses: Vec<IpAddr>,
        /// Delays between attempts; the last one repeats.
        #[serde(deserialize_with = "durations")]
        @live retry: Vec<Duration> = RetrySchedule::default().waits,
        /// Age at which a message is returned as undeliverable.
        #[serde(deserialize_with = "duration")]
        @live give_up_after: Duration = RetrySchedule::default().give_up_after,
        /// TLS requirement for outgoing connections.
        tls: TlsSecurityLevel,
        /// Applies MTA-STS policies of recipient domains (RFC 8461).
        mta_sts: OnOff = OnOff::On,
        /// Applies TLSA records of mail hosts (RFC 7672).
        dane: DaneMode,
        /// PEM file of CA certificates for verified connections; none means the public CAs.
        roots: Option<PathBuf>,
        /// Contact address in TLS reports (RFC 8460); its domain is the reporting organisation. If set, reports are
        /// sent to the domains that request them; otherwise none are sent.
        #[serde(deserialize_with = "parsed::address_option")]
        tls_report_contact: Option<Address>,
        /// Smarthost for all mail.
        smarthost: Option<SmarthostAddress>,
        /// User name at the smarthost.
        smarthost_username: Option<String>,
        /// Password at the smarthost.
        smarthost_password: Option<SecretString>,
        /// Permits delivery to private and loopback addresses.
        allow_private_destinations: bool,
        /// Accepts mail but delivers none.
        @live paused: bool,
        /// Signs mail with DKIM.
        dkim: bool = true,
        /// Also signs each transaction (DKIM2).
        dkim2: OnOff = OnOff::Off,
        /// Maximum number of tasks in memory.
        tasks_in_memory_max: usize = 50_000,
        /// Maximum size of message bodies in memory, in bytes.
        body_bytes_in_memory_max: usize = 256 << 20,
        /// Connection and rate limits by destination.
        pace: Vec<PaceSection>,
        /// Reply rules, applied before the built-in rules.
        @live replies: Vec<ReplySection>,
        /// Smarthosts for some of the mail.
        smarthosts: Vec<SmarthostSection>,
        /// Pools of source addresses for some accounts.
        pools: Vec<PoolSection>,
    }
}

section! {
    /// `[[delivery.pace]]`
    #[derive(PartialEq)]
    PaceSection {
        /// Name of a mail host, or a domain above it; none applies to all other hosts.
        #[serde(deserialize_with = "parsed::host_name_option")]
        mail_host: Option<DomainName>,
        /// Maximum number of connections.
        connections_max: u32 = PaceLimits::default().connections_max,
        /// Maximum number of messages per connection.
        messages_per_connection: u32 = PaceLimits::default().messages_per_connection,
        /// Maximum messages per second; none is unlimited.
        messages_per_second: Option<f64>,
    }
}

impl PaceSection {
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

section! {
    /// `[[delivery.replies]]`
    #[derive(PartialEq, Eq)]
    ReplySection {
        /// Name of a mail host, or a domain above it; none applies to every host.
        #[serde(deserialize_with = "parsed::host_name_option")]
        provider: Option<DomainName>,
        /// Reply code or enhanced status code.
        #[serde(deserialize_with = "parsed::text_option")]
        code: Option<CodePattern>,
        /// Pattern of the reply's text.
        text: Option<String>,
        /// Name of the action. Required; checked after parsing, to report all problems together.
        action: String,
        /// Duration of the action.
        #[serde(rename = "for", deserialize_with = "values::duration_option")]
        duration: Option<Duration>,
    }
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

section! {
    /// `[webhooks]`
    WebhooksSection in webhooks {
        /// Permits endpoints at private addresses.
        allow_private_destinations: bool,
        /// Permits endpoints without TLS.
        allow_http: bool,
        /// Delays before each attempt, including the first.
        #[serde(deserialize_with = "durations")]
        retry: Vec<Duration> = events::webhooks::RETRY_SCHEDULE.to_vec(),
    }
}

section! {
    /// `[service]`
    ServiceSection in service {
        /// Shared sender of accounts that have no verified domain.
        #[serde(deserialize_with = "parsed::address_option")]
        sandbox_sender: Option<Address>,
        /// Marks new domains as verified without checking DNS (development).
        auto_verify_domains: bool,
        /// Default plan of accounts that the operator creates.
        default_plan: Plan = Plan::Dedicated,
        /// Target of the CNAME at `rp` of a customer's domain; see [`Config::return_path_host`].
        #[serde(deserialize_with = "parsed::host_name_option")]
        return_path_host: Option<DomainName>,
        /// Name that a customer's SPF record includes; see [`Config::spf_include_host`].
        #[serde(deserialize_with = "parsed::host_name_option")]
        spf_include_host: Option<DomainName>,
        /// Label of the ownership record of a customer's domain; see [`Config::ownership_label`].
        ownership_label: String = "_service".to_owned(),
        /// Template registered with DNS providers for Domain Connect.
        #[serde(deserialize_with = "parsed::text_option")]
        domain_connect_template: Option<DomainConnectTemplate>,
        /// PEM file of the key that signs Domain Connect requests.
        domain_connect_key: Option<PathBuf>,
        /// Name where its public key is published.
        #[serde(deserialize_with = "parsed::host_name_option")]
        domain_connect_key_name: Option<DomainName>,
    }
}

section! {
    /// `[conversions]`
    ConversionsSection in conversions {
        /// URL that conversions are posted to; none disables them.
        url: Option<String>,
        /// Bearer token.
        token: Option<SecretString>,
        /// Includes the SHA-256 of the person's email address.
        email_hash: bool,
    }
}

section! {
    /// `[testing]`
    TestingSection in testing {
        /// The clock runs ahead by this duration, and `admin clock advance` is permitted. All listeners must be on
        /// loopback.
        #[serde(deserialize_with = "values::duration_option")]
        clock_offset: Option<Duration>,
        /// Port of web servers with MTA-STS policies.
        mta_sts_port: Option<u16>,
    }
}
