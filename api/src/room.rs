//! What every request of the door shares: the hall, the settings, the budget of bytes in flight,
//! the derived router and document, and the tasks that are at work.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use ::affiliate::office::AffiliateService;
use bytes::Bytes;
use mail::address::Address;
use mail::id::RequestId;
use mail::network::IpNetwork;
use mail::quota::Noun;
use proxy::proxies::TrustedProxies;
use queue::accept::Intake;
use queue::quota::StorageReservation;
use store::access::Tenant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::watch::AccessRevalidator;
use crate::auth::login_log::LoginLog;
use crate::auth::passwords::PasswordHasher;
use crate::auth::throttle::SignInRateLimiter;
use crate::journal::RequestLogWriter;
use crate::mta_sts::OwnMtaStsPolicy;
use crate::operations::{self, Operation};
use crate::problem::Problem;
use crate::serve::budget::MemoryBudget;
use crate::serve::pages::Overlay;
use crate::serve::router::OperationRouter;
use crate::visits::VisitRateLimiter;

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
const SIGNUP_REPORTS_MAX: usize = 512;
/// How long a stop waits for requests that have begun.
pub const DRAIN_MAX: Duration = Duration::from_secs(20);

/// The settings of the door.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// The address by which customers reach it, without a slash at its end.
    pub base_url: String,
    /// Where programs hand in mail by SMTP.
    pub submission: SubmissionEndpoint,
    /// The shared sandbox sender, if there is one; sign-in links are sent from its domain.
    pub sandbox_sender: Option<Address>,
    /// Where an account is upgraded: a path on the dashboard, or an address. None when the operator has no such page.
    pub upgrade_url: Option<String>,
    /// The secrets by which the operator's payment processor signs its events; none: it tells nothing.
    pub billing_secrets: Vec<String>,
    /// Mail from the world is received here.
    pub receives_mail: bool,
    /// The policy of MTA-STS of domains that we take mail in for, if there is one.
    pub mta_sts: Option<OwnMtaStsPolicy>,
    /// Who says, before anything else, for whom it connects.
    pub proxies: TrustedProxies,
    /// Who says with a request for whom it is passed on (`X-Forwarded-For`).
    pub forwarding_networks: Vec<IpNetwork>,
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

impl ApiOptions {
    /// The defaults, for this base address.
    #[must_use]
    pub fn new(base_url: &str) -> Self {
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            submission: SubmissionEndpoint::default(),
            sandbox_sender: None,
            upgrade_url: None,
            billing_secrets: Vec::new(),
            receives_mail: false,
            mta_sts: None,
            proxies: TrustedProxies::default(),
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
pub struct SubmissionEndpoint {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// TLS begins with the connection (RFC 8314), not with STARTTLS.
    pub implicit_tls: bool,
    /// The user name of all.
    pub username: String,
}

impl Default for SubmissionEndpoint {
    fn default() -> Self {
        let (host, username) = ("localhost".to_owned(), "postrider".to_owned());
        Self { host, port: 587, implicit_tls: false, username }
    }
}

/// What every request shares.
pub struct AppState {
    pub(crate) intake: Intake,
    pub(crate) options: ApiOptions,
    pub(crate) router: OperationRouter,
    pub(crate) memory_budget: MemoryBudget,
    pub(crate) tasks: TaskTracker,
    pub(crate) request_log: RequestLogWriter,
    pub(crate) password_hasher: PasswordHasher,
    pub(crate) sign_in_limiter: SignInRateLimiter,
    /// How many failed logins were logged lately.
    pub(crate) login_log: LoginLog,
    pub(crate) visit_limits: VisitRateLimiter,
    /// The same for what pages tell an affiliate program.
    pub(crate) click_limits: VisitRateLimiter,
    /// Places for what pages say of referred visitors: it is done behind the answer.
    pub(crate) signup_report_permits: Arc<Semaphore>,
    /// Where everything is done with affiliate programs.
    pub(crate) affiliate: AffiliateService,
    /// What goes on after it was authorised.
    pub(crate) revalidator: AccessRevalidator,
    /// The door closes: what has no end of its own ends.
    pub(crate) shutdown: CancellationToken,
    document: OnceLock<Bytes>,
}

impl AppState {
    /// Furnishes the room: makes the router from the operation table.
    #[must_use]
    pub fn new(hall: Intake, options: ApiOptions) -> Arc<Self> {
        Self::with_operations(hall, options, operations::operation_table())
    }

    /// The same with another table: for tests of the machinery.
    #[must_use]
    pub fn with_operations(hall: Intake, options: ApiOptions, table: Vec<Operation>) -> Arc<Self> {
        hall.set_base_url(&options.base_url);
        Arc::new(Self {
            affiliate: AffiliateService::new(hall.clone()),
            intake: hall,
            router: OperationRouter::new(table),
            memory_budget: MemoryBudget::new(options.bytes_in_flight_max, ACCOUNT_BYTES_MIN),
            options,
            tasks: TaskTracker::new(),
            request_log: RequestLogWriter::default(),
            password_hasher: PasswordHasher::default(),
            sign_in_limiter: SignInRateLimiter::default(),
            login_log: LoginLog::default(),
            visit_limits: VisitRateLimiter::default(),
            click_limits: VisitRateLimiter::default(),
            signup_report_permits: Arc::new(Semaphore::new(SIGNUP_REPORTS_MAX)),
            revalidator: AccessRevalidator::default(),
            shutdown: CancellationToken::new(),
            document: OnceLock::new(),
        })
    }

    /// Where an account is upgraded.
    pub(crate) fn upgrade_url(&self) -> Option<&str> {
        self.options.upgrade_url.as_deref()
    }

    /// The hall.
    #[must_use]
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// Whether nothing is at work, not even behind an answer that was given.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The OpenAPI document, made when it is first asked for.
    pub(crate) fn document(&self) -> Bytes {
        self.document
            .get_or_init(|| crate::openapi::render(self.router.operations(), &self.options.base_url).into())
            .clone()
    }

    /// Reserves room for what an account is about to store: for operations that know only at work whether they add
    /// something, or how large it is. The rest says it in the table ([`operations::Stores`]).
    pub(crate) async fn reserve_storage(
        &self,
        tenant: &Tenant,
        noun: Noun,
        more: u64,
    ) -> Result<StorageReservation, Problem> {
        let reserved = self.intake.storage_quotas().reserve(tenant.account(), noun, more).await;
        reserved.map_err(|error| Problem::from_quota_error(error, self.upgrade_url()))
    }

    /// An id for a request that begins now.
    pub(crate) fn next_request_id(&self) -> RequestId {
        RequestId::new(self.intake.clock().now(), self.intake.entropy().unique_bits())
    }
}
