//! The configuration: one struct. `etc/postrider.toml` documents every key with its default, and a test
//! holds the two together.
//!
//! [`read`] reads the file and names each problem with its line; the environment
//! (`POSTRIDER_SECTION_KEY`) overrides it; [`check`] looks at what contradicts itself.

mod check;
mod explain;
pub mod log;
pub mod mx;
mod plans;
pub mod pools;
mod read;
pub mod smarthosts;
mod values;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use mail::account::Plan;
use mail::address::{Address, DomainName};
use mail::classify::{CodePattern, ReplyAction, ReplyRule, TextPattern};
use mail::network::IpNetwork;
use mail::plan::Plans;
use provider::{DomainConnectTemplate, RequestKey};
use queue::pace::PaceLimits;
use queue::retry::RetrySchedule;
use serde::Deserialize;
use smtp::limits::SessionLimits;

pub use check::missing_source_addresses;
use log::LogSection;
use mx::MxSection;
use pools::PoolSection;
pub use read::{ConfigProblem, environment, from_file, from_file_alone, from_text, line_in};
use smarthosts::SmarthostSection;
pub(crate) use values::read_duration;
pub use values::{DaneMode, OnOff, OutgoingTlsMode as TlsChoice, SecretString, SmarthostAddress, StoreEngine};
use values::{duration, durations, one_or_many, parsed};

/// Everything that can be configured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Our name: in greetings, EHLO and reports. Must resolve to us, and our address to it.
    #[serde(deserialize_with = "parsed::host_name")]
    pub hostname: DomainName,
    /// Where everything lies.
    #[serde(default = "default_data_dir")]
    pub data_dir: PathBuf,
    /// The store.
    #[serde(default)]
    pub store: StoreSection,
    /// The certificate.
    #[serde(default)]
    pub tls: TlsSection,
    /// Submission.
    #[serde(default)]
    pub submission: SubmissionSection,
    /// Trusted hosts that hand in mail without AUTH.
    #[serde(default)]
    pub relay: Vec<RelaySection>,
    /// Mail from the world.
    #[serde(default)]
    pub mx: MxSection,
    /// Load balancers in front of us.
    #[serde(default)]
    pub proxy: ProxySection,
    /// The HTTP API.
    #[serde(default)]
    pub api: ApiSection,
    /// Metrics and health.
    #[serde(default)]
    pub ops: OpsSection,
    /// The log.
    #[serde(default)]
    pub log: LogSection,
    /// Name servers.
    #[serde(default)]
    pub dns: DnsSection,
    /// Delivery.
    #[serde(default)]
    pub delivery: DeliverySection,
    /// Webhooks.
    #[serde(default)]
    pub webhooks: WebhooksSection,
    /// The service as customers see it.
    #[serde(default)]
    pub service: ServiceSection,
    /// Where conversions are told.
    #[serde(default)]
    pub conversions: ConversionsSection,
    /// Text messages.
    #[serde(default)]
    pub sms: SmsSection,
    /// Who pays.
    #[serde(default)]
    pub billing: BillingSection,
    /// What the plans include.
    #[serde(default, deserialize_with = "plans::plans")]
    pub plans: Plans,
    /// For trying things out.
    #[serde(default)]
    pub testing: TestingSection,
    /// Variables of the environment whose names begin as ours do, and that set nothing.
    #[serde(skip)]
    pub ignored_variables: Vec<String>,
}

impl Config {
    /// The name that takes what comes back to an envelope sender: `rp.{domain}` of each sending domain is a
    /// CNAME that leads here. Unless configured, `rp.` before our own name.
    #[must_use]
    pub fn return_path_host(&self) -> DomainName {
        self.service.return_path_host.clone().unwrap_or_else(|| self.subdomain("rp"))
    }

    /// The key that signs requests of Domain Connect, if there is one.
    ///
    /// # Errors
    /// The file cannot be read, or is no such key.
    pub fn domain_connect_key(&self) -> Result<Option<RequestKey>, String> {
        let (Some(file), Some(name)) = (&self.service.domain_connect_key, &self.service.domain_connect_key_name) else {
            return Ok(None);
        };
        let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let pem = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
        RequestKey::new(&pem, name).map(Some).map_err(|error| wrong(&error))
    }

    /// The name whose SPF record lists the addresses that we send from (RFC 7208 5.2): each sending
    /// domain's own record includes it. Unless configured, `spf.` before our own name.
    #[must_use]
    pub fn spf_include_host(&self) -> DomainName {
        self.service.spf_include_host.clone().unwrap_or_else(|| self.subdomain("spf"))
    }

    /// The label below a sending domain at which the ownership record stands.
    #[must_use]
    pub fn ownership_label(&self) -> &str {
        &self.service.ownership_label
    }

    /// A name below ours. [`check`] has refused a name that leaves no room for one.
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
    /// Which engine.
    pub engine: StoreEngine,
    /// The database of the PostgreSQL engine. It may hold a password.
    pub url: Option<SecretString>,
    /// The name of the cluster that the database belongs to.
    pub cluster: String,
    /// Disk kept back so that delivery goes on when the disk is full, in bytes.
    pub reserve_bytes: u64,
    /// How long an email, its message and its history are kept.
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
    /// The certificate chain, PEM.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub private_key: Option<PathBuf>,
    /// Or certificates by ACME.
    pub acme: Option<AcmeSection>,
}

/// `[tls.acme]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcmeSection {
    /// Where the authority's directory is.
    pub directory: String,
    /// Whom it may write to.
    pub contact: Option<String>,
    /// Names beside our own and the API's.
    #[serde(deserialize_with = "one_or_many")]
    pub names: Vec<DomainName>,
    /// Where the authority comes for proofs by HTTP-01.
    #[serde(deserialize_with = "one_or_many")]
    pub http_listen: Vec<SocketAddr>,
    /// Who signs the directory's own certificate, PEM; none means the public authorities.
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
    /// STARTTLS.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// TLS from the first byte (RFC 8314).
    #[serde(deserialize_with = "one_or_many")]
    pub implicit_tls: Vec<SocketAddr>,
    /// The one user name; the password is an SMTP credential.
    pub username: String,
    /// The largest message taken by SMTP, in bytes.
    pub message_bytes_max: u64,
    /// Recipients of one message.
    pub recipients_max: usize,
    /// Sessions of all listeners.
    pub sessions_max: usize,
    /// Sessions of one address.
    pub sessions_per_address_max: usize,
    /// Content in memory over all sessions, in bytes.
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
            sessions_max: smtp::peers::SESSIONS_MAX_DEFAULT,
            sessions_per_address_max: limits.sessions_per_address_max,
            bytes_in_flight_max: smtp::budget::ContentBudget::BYTES_DEFAULT,
        }
    }
}

/// `[[relay]]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelaySection {
    /// Where it listens. Required, like the others; not by serde, so that all that is missing is named.
    #[serde(default, deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// Who may come.
    #[serde(default, deserialize_with = "one_or_many")]
    pub networks: Vec<IpNetwork>,
    /// Whose mail it is: an account's id or its owner's address.
    #[serde(default)]
    pub account: String,
}

/// `[proxy]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProxySection {
    /// Whose connections begin with a PROXY header.
    #[serde(deserialize_with = "one_or_many")]
    pub networks: Vec<IpNetwork>,
}

/// `[api]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ApiSection {
    /// Where it listens.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
    /// How customers reach it: stands in the OpenAPI document.
    pub base_url: Option<String>,
    /// With TLS (else a proxy in front has it).
    pub tls: bool,
    /// Requests are counted, and bounded by the plans.
    pub rate_limit: OnOff,
    /// Connections of one address.
    pub connections_per_address_max: usize,
    /// Who says with a request for whom it is passed on.
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
            connections_per_address_max: api::room::CONNECTIONS_PER_ADDRESS_MAX,
            forwarding_networks: Vec::new(),
        }
    }
}

/// `[ops]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OpsSection {
    /// Where `/metrics` and `/healthz` are.
    #[serde(deserialize_with = "one_or_many")]
    pub listen: Vec<SocketAddr>,
}

/// `[sms]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SmsSection {
    /// Where text messages are posted to; none where nobody sends any.
    pub url: Option<String>,
    /// The bearer token.
    pub token: Option<SecretString>,
    /// Who sends: a number or a name.
    pub from: Option<String>,
}

/// `[billing]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BillingSection {
    /// Where an account is upgraded, as refusals say: a path on the dashboard, or an address. None: they name no page.
    pub upgrade_url: Option<String>,
    /// By which the operator's payment processor signs its events; two while one replaces another.
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
    /// The keys from which on signatures are checked, DNSKEY records in a file; none means those of the public root.
    pub trust_anchors: Option<PathBuf>,
    /// How long a lookup may take, for `postrider dev`; not in the file.
    #[serde(skip)]
    pub deadline: Option<Duration>,
}

/// `[delivery]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeliverySection {
    /// The port of mail hosts.
    pub port: u16,
    /// Local addresses to send from; none lets the system choose.
    pub source_addresses: Vec<IpAddr>,
    /// The waits between attempts; the last one repeats.
    #[serde(deserialize_with = "durations")]
    pub retry: Vec<Duration>,
    /// When delivery is given up.
    #[serde(deserialize_with = "duration")]
    pub give_up_after: Duration,
    /// What TLS is asked of other hosts.
    pub tls: TlsChoice,
    /// Whether domains' policies count (RFC 8461).
    pub mta_sts: OnOff,
    /// Whether hosts' TLSA records count (RFC 7672).
    pub dane: DaneMode,
    /// Whose certificates hold, where they are checked; none means the public authorities'.
    pub roots: Option<PathBuf>,
    /// Who can be asked about reports of how TLS went (RFC 8460). Named, they are sent to the domains that ask for
    /// them; else nothing is sent. One key is all that a report needs: its organisation is the contact's domain.
    pub tls_report_contact: Option<Address>,
    /// A host that takes all mail.
    pub smarthost: Option<SmarthostAddress>,
    /// Who we are there.
    pub smarthost_username: Option<String>,
    /// The password there.
    pub smarthost_password: Option<SecretString>,
    /// Mail may go to private and loopback addresses.
    pub allow_private_destinations: bool,
    /// Mail is accepted and stays.
    pub paused: bool,
    /// Mail is signed.
    pub dkim: bool,
    /// It is signed for each transaction, too (DKIM2).
    pub dkim2: OnOff,
    /// Tasks in memory.
    pub tasks_in_memory_max: usize,
    /// Bodies in memory, in bytes.
    pub body_bytes_in_memory_max: usize,
    /// How fast destinations are served.
    pub pace: Vec<PaceSection>,
    /// What replies call for, before what they call for anyway.
    pub replies: Vec<ReplySection>,
    /// Hosts that take some of the mail.
    pub smarthosts: Vec<SmarthostSection>,
    /// Addresses that some accounts' mail leaves from.
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
    /// A mail host's name, or a domain above it; none is for all others.
    #[serde(default, deserialize_with = "parsed::host_name_option")]
    pub mail_host: Option<DomainName>,
    /// Connections at most.
    #[serde(default = "PaceSection::connections_max")]
    pub connections_max: u32,
    /// Messages over one connection.
    #[serde(default = "PaceSection::messages_per_connection")]
    pub messages_per_connection: u32,
    /// Messages a second; none is no limit.
    pub messages_per_second: Option<f64>,
}

impl PaceSection {
    fn connections_max() -> u32 {
        PaceLimits::default().connections_max
    }

    fn messages_per_connection() -> u32 {
        PaceLimits::default().messages_per_connection
    }

    /// As the queue wants it.
    #[must_use]
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
    /// A mail host's name, or a domain above it; none is every host.
    #[serde(default, deserialize_with = "parsed::host_name_option")]
    pub provider: Option<DomainName>,
    /// The code.
    #[serde(default, deserialize_with = "parsed::code_option")]
    pub code: Option<CodePattern>,
    /// Words of the text.
    pub text: Option<String>,
    /// What is done. Required; not by serde, so that it is named with what else is wrong.
    #[serde(default)]
    pub action: String,
    /// For how long.
    #[serde(default, rename = "for", deserialize_with = "values::duration_option")]
    pub lasts: Option<Duration>,
}

impl ReplySection {
    /// As the queue wants it.
    ///
    /// # Errors
    /// There is no such action.
    pub fn to_rule(&self) -> Result<ReplyRule, String> {
        Ok(ReplyRule {
            provider: self.provider.clone(),
            code: self.code,
            text: self.text.as_deref().map(TextPattern::new),
            action: ReplyAction::parse(&self.action, self.lasts)?,
        })
    }
}

/// `[webhooks]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhooksSection {
    /// Endpoints at private addresses may be posted to.
    pub allow_private_destinations: bool,
    /// Endpoints without TLS too.
    pub allow_http: bool,
    /// The waits before each attempt, the first one included.
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
    /// The shared sender of accounts that have no verified domain yet.
    pub sandbox_sender: Option<Address>,
    /// Domains are verified when they are added, without looking (development).
    pub auto_verify_domains: bool,
    /// The plan of an account that the operator makes without naming one.
    pub default_plan: Plan,
    /// Where the CNAME at `rp` of a customer's domain leads; see [`Config::return_path_host`].
    #[serde(deserialize_with = "parsed::host_name_option")]
    pub return_path_host: Option<DomainName>,
    /// What a customer's SPF record includes; see [`Config::spf_include_host`].
    #[serde(deserialize_with = "parsed::host_name_option")]
    pub spf_include_host: Option<DomainName>,
    /// Where the ownership record of a customer's domain stands; see [`Config::ownership_label`].
    pub ownership_label: String,
    /// The template that is registered with DNS providers for Domain Connect.
    #[serde(deserialize_with = "parsed::template_option")]
    pub domain_connect_template: Option<DomainConnectTemplate>,
    /// The key that signs requests for it, PEM.
    pub domain_connect_key: Option<PathBuf>,
    /// The name at which its public half is published.
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
    /// Where they are posted; none is nowhere.
    pub url: Option<String>,
    /// With this bearer token.
    pub token: Option<SecretString>,
    /// With the SHA-256 of the person's address.
    pub email_hash: bool,
}

/// `[testing]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TestingSection {
    /// The clock runs ahead by this, and `admin clock advance` works. Refused unless all listeners are
    /// on loopback.
    #[serde(deserialize_with = "values::duration_option")]
    pub clock_offset: Option<Duration>,
    /// The port of web servers that have policies of MTA-STS.
    pub mta_sts_port: Option<u16>,
}
