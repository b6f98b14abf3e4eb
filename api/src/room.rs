//! What every request of the door shares: the hall, the settings, the budget of bytes in flight,
//! the derived router and document, and the tasks that are at work.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use ::affiliate::office::Office;
use bytes::Bytes;
use mail::address::Address;
use mail::id::RequestId;
use mail::network::Network;
use mail::quota::Noun;
use proxy::proxies::Proxies;
use queue::accept::Hall;
use queue::quota::Reserved;
use store::access::Tenant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::watch::AccessWatch;
use crate::auth::login_log::LoginLog;
use crate::auth::passwords::Passwords;
use crate::auth::throttle::Throttle;
use crate::journal::Journal;
use crate::mta_sts::OwnPolicy;
use crate::operations::{self, Operation};
use crate::problem::Problem;
use crate::serve::budget::Budget;
use crate::serve::pages::Overlay;
use crate::serve::router::Router;
use crate::visits::Limits;

/// Connections that may be open at once. An idle one costs some kilobytes.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Connections that one address (one /64 of IPv6) may have open at once: an office behind one address has
/// some dozens, a pool of workers that keeps its connections perhaps a hundred.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 256;
/// What one account may always hold: one of the largest requests ([`crate::emails::REQUEST_BYTES_MAX`]), and what of it is
/// in memory twice while it is unpacked.
pub const ACCOUNT_BYTES_MIN: usize = crate::emails::REQUEST_BYTES_MAX + (16 << 20);
/// Bytes of request bodies and large answers that may be in flight at once: room for two accounts with one of the largest
/// requests each ([`ACCOUNT_BYTES_MIN`]) beside eight thousand ordinary ones of 10 KB. While a request is worked on it takes up to twice its body in memory (the files decoded,
/// then the message composed of them).
pub const BYTES_IN_FLIGHT_MAX: usize = 400 << 20;
/// Sign-ups of referred visitors that are heard at once.
const PEOPLE_TOLD_MAX: usize = 512;
/// How long a stop waits for requests that have begun.
pub const DRAIN_MAX: Duration = Duration::from_secs(20);

/// The settings of the door.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address by which customers reach it, without a slash at its end.
    pub base_url: String,
    /// Where programs hand in mail by SMTP.
    pub submission: SubmissionFacts,
    /// The shared sandbox sender, if there is one; sign-in links are sent from its domain.
    pub sandbox_sender: Option<Address>,
    /// Where an account is upgraded: a path on the dashboard, or an address. None when the operator has no such page.
    pub upgrade_url: Option<String>,
    /// The secrets by which the operator's payment processor signs its events; none: it tells nothing.
    pub billing_secrets: Vec<String>,
    /// Mail from the world is received here.
    pub receives_mail: bool,
    /// The policy of MTA-STS of domains that we take mail in for, if there is one.
    pub mta_sts: Option<OwnPolicy>,
    /// Who says, before anything else, for whom it connects.
    pub proxies: Proxies,
    /// Who says with a request for whom it is passed on (`X-Forwarded-For`).
    pub forwarding_networks: Vec<Network>,
    /// Connections at once.
    pub connections_max: usize,
    /// Connections of one address at once.
    pub connections_per_address_max: usize,
    /// Bytes in flight at once; there is always room for one largest request.
    pub bytes_in_flight_max: usize,
    /// How long a stop waits for requests that have begun.
    pub drain_max: Duration,
    /// Pages that share the port (`postrider dev`).
    pub overlay: Option<Arc<dyn Overlay>>,
}

impl Options {
    /// The defaults, for this base address.
    #[must_use]
    pub fn new(base_url: &str) -> Self {
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            submission: SubmissionFacts::default(),
            sandbox_sender: None,
            upgrade_url: None,
            billing_secrets: Vec::new(),
            receives_mail: false,
            mta_sts: None,
            proxies: Proxies::default(),
            forwarding_networks: Vec::new(),
            connections_max: CONNECTIONS_MAX,
            connections_per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
            bytes_in_flight_max: BYTES_IN_FLIGHT_MAX,
            drain_max: DRAIN_MAX,
            overlay: None,
        }
    }
}

/// What an SMTP client must know of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionFacts {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// TLS begins with the connection (RFC 8314), not with STARTTLS.
    pub implicit_tls: bool,
    /// The user name of all.
    pub username: String,
}

impl Default for SubmissionFacts {
    fn default() -> Self {
        let (host, username) = ("localhost".to_owned(), "postrider".to_owned());
        Self { host, port: 587, implicit_tls: false, username }
    }
}

/// What every request shares.
pub struct Room {
    pub(crate) hall: Hall,
    pub(crate) options: Options,
    pub(crate) router: Router,
    pub(crate) budget: Budget,
    pub(crate) tasks: TaskTracker,
    pub(crate) journal: Journal,
    pub(crate) passwords: Passwords,
    pub(crate) throttle: Throttle,
    /// How many failed logins were logged lately.
    pub(crate) login_log: LoginLog,
    pub(crate) visit_limits: Limits,
    /// The same for what pages tell an affiliate program.
    pub(crate) click_limits: Limits,
    /// Places for what pages say of referred visitors: it is done behind the answer.
    pub(crate) people_told: Arc<Semaphore>,
    /// Where everything is done with affiliate programs.
    pub(crate) affiliate: Office,
    /// What goes on after it was authorised.
    pub(crate) access_watch: AccessWatch,
    /// The door closes: what has no end of its own ends.
    pub(crate) closing: CancellationToken,
    document: OnceLock<Bytes>,
}

impl Room {
    /// Furnishes the room: makes the router from the operation table.
    #[must_use]
    pub fn new(hall: Hall, options: Options) -> Arc<Self> {
        Self::with_operations(hall, options, operations::table())
    }

    /// The same with another table: for tests of the machinery.
    #[must_use]
    pub fn with_operations(hall: Hall, options: Options, table: Vec<Operation>) -> Arc<Self> {
        hall.open_pages_at(&options.base_url);
        Arc::new(Self {
            affiliate: Office::new(hall.clone()),
            hall,
            router: Router::new(table),
            budget: Budget::new(options.bytes_in_flight_max, ACCOUNT_BYTES_MIN),
            options,
            tasks: TaskTracker::new(),
            journal: Journal::default(),
            passwords: Passwords::default(),
            throttle: Throttle::default(),
            login_log: LoginLog::default(),
            visit_limits: Limits::default(),
            click_limits: Limits::default(),
            people_told: Arc::new(Semaphore::new(PEOPLE_TOLD_MAX)),
            access_watch: AccessWatch::default(),
            closing: CancellationToken::new(),
            document: OnceLock::new(),
        })
    }

    /// Where an account is upgraded.
    pub(crate) fn upgrade_url(&self) -> Option<&str> {
        self.options.upgrade_url.as_deref()
    }

    /// The hall.
    #[must_use]
    pub fn hall(&self) -> &Hall {
        &self.hall
    }

    /// Whether nothing is at work, not even behind an answer that was given.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The OpenAPI document, made when it is first asked for.
    pub(crate) fn document(&self) -> Bytes {
        self.document
            .get_or_init(|| crate::openapi::text(self.router.operations(), &self.options.base_url).into())
            .clone()
    }

    /// Reserves room for what an account is about to store: for operations that know only at work whether they add
    /// something, or how large it is. The rest says it in the table ([`operations::Stores`]).
    pub(crate) async fn reserve(&self, tenant: &Tenant, noun: Noun, more: u64) -> Result<Reserved, Problem> {
        let reserved = self.hall.quotas().reserve(tenant.account(), noun, more).await;
        reserved.map_err(|error| Problem::of_quota(error, self.upgrade_url()))
    }

    /// An id for a request that begins now.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId::new(self.hall.clock().now(), self.hall.entropy().id())
    }
}
