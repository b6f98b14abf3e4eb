//! MTA-STS policies of recipient domains (RFC 8461): discovered, fetched and cached.
//!
//! ```text
//! _mta-sts.{domain} TXT ─► cached policy with that id, or https://mta-sts.{domain}/.well-known/mta-sts.txt ─► stored
//! ```
//!
//! A policy is valid until its `max_age` ends, whatever the DNS or the web server answer meanwhile, so that an attacker
//! in between cannot remove it (RFC 8461 10.2). It is fetched again when its id changes and once a day, so that a
//! renewed policy has no gap. A failed fetch is not repeated at once, and does not delay mail.

use std::time::Duration;

use dns::resolver::Resolver;
use jiff::{SignedDuration, Timestamp};
use message::address::DomainName;
use message::mta_sts::{self, CachedMtaStsPolicy, MtaStsPolicy, MtaStsPolicyError, POLICY_BYTES_MAX};
use message::tls_report::{TlsFault, TlsResultType};
use net::http_client::{HttpClient, HttpClientError, HttpGet};
use quick_cache::sync::Cache;
use store::engine::{ReadError, Store};
use thiserror::Error;
use tokio::sync::Semaphore;

/// Timeout of a fetch (RFC 8461 3.3 suggests a minute; mail waits for it).
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
/// Time before a failed fetch is repeated (RFC 8461 3.3: five minutes or more).
const FAILURE_TTL: SignedDuration = SignedDuration::from_mins(5);
/// Age after which a policy is fetched again.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// Concurrent fetches, so that silent web servers block only half of the lookups.
const FETCHES_MAX: usize = 256;
/// Domains with a failed fetch in memory.
const FAILED_MAX: usize = 10_000;

/// Error of fetching an announced policy (RFC 8460 4.3).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyFetchError {
    /// The request failed.
    #[error("{0}")]
    Http(#[from] HttpClientError),
    /// The status is not 200. Redirects are not followed (RFC 8461 3.3).
    #[error("the policy's web server answered with status {0}")]
    Status(u16),
    /// The media type is not `text/plain` (RFC 8461 3.2).
    #[error("the policy's web server sent {0} instead of text/plain")]
    ContentType(String),
    /// The body is incomplete or too long.
    #[error("the policy is incomplete or too long")]
    Truncated,
    /// The body is not a valid policy.
    #[error(transparent)]
    Policy(#[from] MtaStsPolicyError),
}

impl PolicyFetchError {
    /// Maps the error to a TLS report result (RFC 8460 4.3).
    fn tls_report_failure(&self) -> TlsFault {
        let result = match self {
            // Certificate errors as worded by rustls.
            Self::Http(HttpClientError::ConnectionFailed(reason)) if reason.contains("invalid peer certificate") => {
                TlsResultType::StsWebpkiInvalid
            }
            Self::Http(_) | Self::Status(_) | Self::Truncated => TlsResultType::StsPolicyFetchError,
            Self::ContentType(_) | Self::Policy(_) => TlsResultType::StsPolicyInvalid,
        };
        TlsFault::new(result, self.to_string())
    }
}

/// State of a domain's policy.
#[derive(Debug, Default)]
pub struct StsPolicyState {
    /// Valid policy; `None` if the domain has none or it could not be fetched.
    pub policy: Option<CachedMtaStsPolicy>,
    /// Fault of the last fetch, if an announced policy could not be fetched.
    pub fault: Option<TlsFault>,
}

impl From<Option<CachedMtaStsPolicy>> for StsPolicyState {
    fn from(policy: Option<CachedMtaStsPolicy>) -> Self {
        Self { policy, fault: None }
    }
}

/// Fetches and caches policies.
#[derive(Debug)]
pub struct StsPolicies {
    store: Store,
    client: HttpClient,
    /// Port of the web servers: 443, except in tests.
    port: u16,
    /// Time and cause of the last failed fetch, by domain.
    failed: Cache<DomainName, (Timestamp, TlsFault)>,
    fetches: Semaphore,
}

/// The policy of a domain is unknown now: its mail is deferred rather than sent without the policy.
#[derive(Debug, Error)]
pub enum PolicyUnavailable {
    /// The limit of concurrent fetches is reached.
    #[error("too many MTA-STS policies are being fetched at once")]
    TooManyFetches,
    /// The stored policy cannot be read.
    #[error("cannot read the MTA-STS policy: {0}")]
    Read(#[from] ReadError),
}

impl StsPolicies {
    /// Creates a cache in `store` that fetches with `client`.
    pub fn new(store: Store, client: HttpClient, port: u16) -> Self {
        Self { store, client, port, failed: Cache::new(FAILED_MAX), fetches: Semaphore::new(FETCHES_MAX) }
    }

    /// Returns the state of a domain's policy, fetching it if needed.
    ///
    /// # Errors
    /// `TooManyFetches` when too many fetches are in progress, `Read` when the stored policy cannot be read.
    pub async fn policy_of(
        &self,
        domain: &DomainName,
        resolver: &Resolver,
        now: Timestamp,
    ) -> Result<StsPolicyState, PolicyUnavailable> {
        let cached = store::sts_policy::get(&self.store, domain).await?;
        let valid = cached.filter(|cached| cached.expires_at() > now);
        let record = match domain.child("_mta-sts") {
            Ok(name) => resolver.txt(&name).await.map(|found| mta_sts::policy_id(&found.data)),
            Err(_) => Ok(None),
        };
        // Without an announcement or DNS answer the stored policy stays valid (RFC 8461 3.1, 5.1).
        let Ok(Some(id)) = record else { return Ok(valid.into()) };
        let is_current = |cached: &CachedMtaStsPolicy| {
            let age = now.duration_since(cached.fetched_at);
            cached.id == id && age < REFRESH_AFTER && cached.expires_at().duration_since(now) > age
        };
        if valid.as_ref().is_some_and(is_current) {
            return Ok(valid.into());
        }
        if let Some(failure) = self.recent_failure(domain, now) {
            return Ok(StsPolicyState { fault: valid.is_none().then_some(failure), policy: valid });
        }
        let _permit = match (self.fetches.try_acquire(), &valid) {
            (Ok(permit), _) => permit,
            (Err(_), Some(_)) => return Ok(valid.into()),
            (Err(_), None) => return Err(PolicyUnavailable::TooManyFetches),
        };
        match self.fetch_policy(domain, id, now).await {
            Ok(policy) => {
                if let Err(error) = store::sts_policy::put(&self.store, domain, &policy).await {
                    tracing::error!(%error, "cannot store an MTA-STS policy");
                }
                Ok(Some(policy).into())
            }
            Err(error) => {
                tracing::info!(%domain, %error, "cannot fetch the MTA-STS policy");
                metrics::counter!("postrider_mta_sts_fetches_total", "outcome" => "failed").increment(1);
                let failure = error.tls_report_failure();
                self.record_failure(domain, now, failure.clone());
                Ok(StsPolicyState { fault: valid.is_none().then_some(failure), policy: valid })
            }
        }
    }

    async fn fetch_policy(
        &self,
        domain: &DomainName,
        id: String,
        now: Timestamp,
    ) -> Result<CachedMtaStsPolicy, PolicyFetchError> {
        let port = if self.port == 443 { String::new() } else { format!(":{}", self.port) };
        let get = HttpGet {
            url: format!("https://mta-sts.{domain}{port}/.well-known/mta-sts.txt"),
            headers: Vec::new(),
            timeout: FETCH_TIMEOUT,
            response_bytes_max: POLICY_BYTES_MAX,
        };
        let answer = self.client.get(get).await?;
        if answer.status != 200 {
            return Err(PolicyFetchError::Status(answer.status));
        }
        if !answer.is_complete {
            return Err(PolicyFetchError::Truncated);
        }
        let media = answer.content_type.unwrap_or_default();
        let kind = media.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("text/plain") {
            let media_type = kind.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(PolicyFetchError::ContentType(media_type));
        }
        let policy = MtaStsPolicy::parse(&answer.body)?;
        metrics::counter!("postrider_mta_sts_fetches_total", "outcome" => "fetched").increment(1);
        Ok(CachedMtaStsPolicy::new(id, policy, &answer.body, now))
    }

    fn recent_failure(&self, domain: &DomainName, now: Timestamp) -> Option<TlsFault> {
        let (_, failure) = self.failed.get(domain).filter(|(at, _)| now.duration_since(*at) < FAILURE_TTL)?;
        Some(failure)
    }

    fn record_failure(&self, domain: &DomainName, now: Timestamp, failure: TlsFault) {
        self.failed.insert(domain.clone(), (now, failure));
    }
}
