//! `AppState`: everything that the handlers share (subsystems, settings, memory budget, limiters, request log, running
//! tasks), and the options of the HTTP API. It does not depend on the handlers: the router is in
//! [`ApiServer`](crate::server::ApiServer).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ::affiliate::service::AffiliateService;
use accounts::subsystems::{AccountSubsystems, Subsystems};
use bytes::Bytes;
use httpd::problem::Problem;
use httpd::request::SEND_BYTES_MAX;
use message::address::{Address, DomainName};
use message::mta_sts::MtaStsMode;
use model::cidr::IpNetwork;
use model::id::RequestId;
use model::quota::Noun;
use net::limit::memory_budget::MemoryBudget;
use net::proxy_protocol::trusted_proxies::TrustedProxies;
use queue::intake::storage_quota::StorageReservation;
use queue::services::Services;
use store::access::Tenant;
use store::engine::{Batch, CommitError};

use crate::access::revalidation::AccessRevalidator;
use crate::account_permits::AccountPermits;
use crate::approval_signals::ApprovalSignals;
use crate::auth::SignInGuards;
use crate::background_work::BackgroundWork;
use crate::mounted_service::MountedService;
use crate::oauth::caches::OAuthCaches;
use crate::request_log::RequestLogWriter;
use crate::serve::static_pages::Overlay;
use crate::session_pages::SessionPages;
use crate::submit_problem;
use crate::visits::limits::VisitLimits;

/// Most open connections. An idle one costs a few kilobytes.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Most open connections of one address (one /64 of IPv6). An office behind one address needs some dozens, a pool of
/// workers that keeps its connections open perhaps a hundred.
pub const CONNECTIONS_PER_ADDRESS_MAX: usize = 256;
/// Memory that one account may always reserve: one of the largest requests ([`SEND_BYTES_MAX`]),
/// plus the part of it that is in memory twice during decompression.
pub const ACCOUNT_BYTES_MIN: usize = SEND_BYTES_MAX + (16 << 20);
/// Most bytes of request bodies and large responses in memory: two accounts with one of the largest requests each
/// ([`ACCOUNT_BYTES_MIN`]), and eight thousand ordinary requests of 10 KB. A request in progress takes up to twice
/// its body (the decoded attachments, then the message composed of them).
pub const BYTES_IN_FLIGHT_MAX: usize = 400 << 20;
/// Longest wait of a shutdown for requests in progress.
pub const DRAIN_MAX: Duration = Duration::from_secs(20);

/// Options of the HTTP API.
#[derive(Debug, Clone)]
pub struct ApiOptions {
    /// The public base URL, without a trailing slash.
    pub base_url: String,
    /// The SMTP submission service, as clients reach it.
    pub submission: SubmissionEndpoint,
    /// The shared sandbox sender, if configured; sign-in links are sent from its domain.
    pub sandbox_sender: Option<Address>,
    /// The upgrade page: a path on the dashboard or a URL. `None` if the operator has no such page.
    pub upgrade_url: Option<String>,
    /// Secrets that verify the signatures of the operator's billing events; empty if billing is not configured.
    pub billing_secrets: Vec<String>,
    /// True if the MX listener receives mail.
    pub receives_mail: bool,
    /// The MTA-STS policy of the receiving domains, if configured (RFC 8461).
    pub mta_sts: Option<OwnMtaStsPolicy>,
    pub connections: ConnectionOptions,
    /// The memory budget for bodies in bytes; one largest request always fits.
    pub bytes_in_flight_max: usize,
    pub pages: PageOptions,
}

/// How the API's listeners accept connections.
#[derive(Debug, Clone)]
pub struct ConnectionOptions {
    /// Peers that send a PROXY protocol header with the client's address.
    pub proxies: TrustedProxies,
    /// Peers whose `X-Forwarded-For` is trusted.
    pub forwarding_networks: Vec<IpNetwork>,
    /// Most open connections.
    pub max: usize,
    /// Most open connections of one address.
    pub per_address_max: usize,
    /// Longest wait of a shutdown for requests in progress.
    pub drain_max: Duration,
}

impl Default for ConnectionOptions {
    fn default() -> Self {
        Self {
            proxies: TrustedProxies::default(),
            forwarding_networks: Vec::new(),
            max: CONNECTIONS_MAX,
            per_address_max: CONNECTIONS_PER_ADDRESS_MAX,
            drain_max: DRAIN_MAX,
        }
    }
}

/// Pages and services of other crates on the API's port.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// Pages that share the API's port (`postrider dev`).
    pub overlay: Option<Arc<dyn Overlay>>,
    /// Pages with sessions: the dashboard.
    pub with_sessions: Option<Arc<dyn SessionPages>>,
    /// A service under a path of its own: the MCP server.
    pub mounted_service: Option<Arc<dyn MountedService>>,
}

impl ApiOptions {
    /// The default options with this base URL.
    pub fn new(base_url: &str) -> Self {
        Self {
            base_url: base_url.trim_end_matches('/').to_owned(),
            submission: SubmissionEndpoint::default(),
            sandbox_sender: None,
            upgrade_url: None,
            billing_secrets: Vec::new(),
            receives_mail: false,
            mta_sts: None,
            connections: ConnectionOptions::default(),
            bytes_in_flight_max: BYTES_IN_FLIGHT_MAX,
            pages: PageOptions::default(),
        }
    }
}

/// Address and settings of the submission service, for SMTP clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmissionEndpoint {
    pub host: String,
    pub port: u16,
    /// True for TLS from the start of the connection (RFC 8314), false for STARTTLS.
    pub implicit_tls: bool,
    /// The user name, which is the same for all accounts.
    pub username: String,
}

impl Default for SubmissionEndpoint {
    fn default() -> Self {
        let (host, username) = ("localhost".to_owned(), "postrider".to_owned());
        Self { host, port: 587, implicit_tls: false, username }
    }
}

/// The policy of this service's mail host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnMtaStsPolicy {
    pub mode: MtaStsMode,
    /// The MX host of the policy.
    pub mx: DomainName,
}

/// Renders the OpenAPI document of the operation table.
pub(crate) type OpenApiRenderer = Box<dyn FnOnce() -> Bytes + Send>;

/// The state that all requests share.
pub struct AppState {
    pub(crate) services: Services,
    pub(crate) queue: Arc<Subsystems>,
    pub(crate) accounts: AccountSubsystems,
    pub(crate) affiliate: AffiliateService,
    pub(crate) options: ApiOptions,
    pub(crate) memory_budget: MemoryBudget,
    pub(crate) background: BackgroundWork,
    pub(crate) request_log: RequestLogWriter,
    pub(crate) sign_in: SignInGuards,
    pub(crate) oauth: OAuthCaches,
    pub(crate) visits: VisitLimits,
    /// Wakes the execution of approved requests, and those that wait for its end.
    pub(crate) approvals: ApprovalSignals,
    /// An account replays past events for one automation at a time.
    pub(crate) replay_permits: AccountPermits,
    /// Rechecks the access of streams and exports while they run.
    pub(crate) revalidator: Arc<AccessRevalidator>,
    /// The OpenAPI document, rendered on first use.
    openapi: LazyLock<Bytes, OpenApiRenderer>,
}

/// The state as a handler gets it.
pub type State = Arc<AppState>;

impl AppState {
    /// Builds the state; `openapi` renders the OpenAPI document when it is first requested.
    pub(crate) fn new(
        queue: Arc<Subsystems>,
        accounts: AccountSubsystems,
        affiliate: AffiliateService,
        options: ApiOptions,
        openapi: OpenApiRenderer,
    ) -> Arc<Self> {
        accounts.links.set_base_url(&options.base_url);
        let (services, background) = (queue.services.clone(), BackgroundWork::default());
        let credentials = Arc::clone(&accounts.credentials);
        Arc::new(Self {
            revalidator: AccessRevalidator::new(&services, credentials, background.clone()),
            visits: VisitLimits::new(Arc::clone(&queue.events.email_tracking)),
            services,
            queue,
            accounts,
            affiliate,
            memory_budget: MemoryBudget::new(options.bytes_in_flight_max, ACCOUNT_BYTES_MIN),
            options,
            background,
            request_log: RequestLogWriter::default(),
            sign_in: SignInGuards::default(),
            oauth: OAuthCaches::default(),
            approvals: ApprovalSignals::default(),
            replay_permits: AccountPermits::default(),
            openapi: LazyLock::new(openapi),
        })
    }

    pub(crate) fn upgrade_url(&self) -> Option<&str> {
        self.options.upgrade_url.as_deref()
    }

    /// True if no handler runs, not even after its response was sent.
    pub fn is_idle(&self) -> bool {
        self.background.tasks.is_empty()
    }

    /// The OpenAPI document.
    pub(crate) fn openapi(&self) -> Bytes {
        LazyLock::force(&self.openapi).clone()
    }

    /// Reserves storage quota, for handlers that determine whether and how much they store only while they run. Other
    /// operations declare their cost in the operation table ([`StorageCost`](crate::operation::StorageCost)).
    pub(crate) async fn reserve_storage(
        &self,
        tenant: &Tenant,
        noun: Noun,
        amount: u64,
    ) -> Result<StorageReservation, Problem> {
        let reserved = self.accounts.limits.storage.reserve(tenant.account(), noun, amount).await;
        reserved.map_err(|error| submit_problem::from_quota_error(error, self.upgrade_url()))
    }

    /// Commits a change. Returns false if what was read has changed at the same time.
    pub(crate) async fn commit(&self, batch: Batch) -> Result<bool, Problem> {
        match self.services.store.commit(batch).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict { .. }) => Ok(false),
            Err(error) => Err(Problem::outage(error)),
        }
    }

    pub(crate) fn next_request_id(&self) -> RequestId {
        RequestId::new(self.services.clock.now(), self.services.entropy.unique_bits())
    }
}
