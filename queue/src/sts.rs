//! MTA-STS (RFC 8461): which policy a recipient's domain has, found, fetched and kept.
//!
//! ```text
//! _mta-sts.{domain} TXT ─► the policy kept under that id, or https://mta-sts.{domain}/.well-known/mta-sts.txt ─► kept
//! ```
//!
//! A policy that was seen holds until its time is over, whatever the DNS or the web server say meanwhile: who stands in
//! between cannot take it away (RFC 8461 10.2). It is fetched anew when its id changes, and once a day, so that a
//! domain whose policy lives gets no gap. What cannot be fetched is not asked for again at once, and stops no mail.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dns::lookup::Resolver;
use jiff::{SignedDuration, Timestamp};
use mail::address::DomainName;
use mail::mta_sts::{self, CachedMtaStsPolicy, MtaStsPolicy, MtaStsPolicyError, POLICY_BYTES_MAX};
use mail::tls_report::{TlsFault, TlsResultType};
use store::engine::{ReadError, Store};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::courier::http::{HttpClient, HttpClientError, HttpGet};

/// How long a fetch may take (RFC 8461 3.3 suggests a minute; mail waits for it).
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
/// How long is waited after a fetch that failed (RFC 8461 3.3: five minutes or more).
const FAILURE_TTL: SignedDuration = SignedDuration::from_mins(5);
/// How old a policy may get before it is looked at again.
const REFRESH_AFTER: SignedDuration = SignedDuration::from_hours(24);
/// Policies fetched at once: web servers that say nothing hold up half of the look-ups, and not all.
const FETCHES_MAX: usize = 256;
/// Domains whose policy could not be fetched that are remembered.
const FAILED_MAX: usize = 10_000;

/// Why a policy that was announced is not to be had (RFC 8460 4.3).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PolicyFetchError {
    /// No answer.
    #[error("{0}")]
    Http(#[from] HttpClientError),
    /// Another answer than the policy: redirects are not followed (RFC 8461 3.3).
    #[error("its web server answers {0}")]
    Status(u16),
    /// Something else than a text (RFC 8461 3.2): a page for people, most likely.
    #[error("its web server answers with {0}, and not with text/plain")]
    ContentType(String),
    /// It breaks off, or is too long.
    #[error("the policy did not come to its end")]
    Truncated,
    /// It is none.
    #[error(transparent)]
    Policy(#[from] MtaStsPolicyError),
}

impl PolicyFetchError {
    /// The same in the words of reports (RFC 8460 4.3).
    fn tls_report_failure(&self) -> TlsFault {
        let result = match self {
            // What rustls says of certificates.
            Self::Http(HttpClientError::ConnectionFailed(why)) if why.contains("invalid peer certificate") => {
                TlsResultType::StsWebpkiInvalid
            }
            Self::Http(_) | Self::Status(_) | Self::Truncated => TlsResultType::StsPolicyFetchError,
            Self::ContentType(_) | Self::Policy(_) => TlsResultType::StsPolicyInvalid,
        };
        TlsFault::new(result, self.to_string())
    }
}

/// How it stands with a domain's policy.
#[derive(Debug, Default)]
pub struct StsPolicyState {
    /// The one that holds now; none when it has none, or none that could be had.
    pub policy: Option<CachedMtaStsPolicy>,
    /// Why one that is announced could not be had.
    pub fault: Option<TlsFault>,
}

impl From<Option<CachedMtaStsPolicy>> for StsPolicyState {
    fn from(policy: Option<CachedMtaStsPolicy>) -> Self {
        Self { policy, fault: None }
    }
}

/// Domains whose policy could not be had: when, and why.
type FailedFetches = HashMap<DomainName, (Timestamp, TlsFault)>;

/// Finds policies.
#[derive(Debug)]
pub struct StsPolicies {
    store: Store,
    client: HttpClient,
    /// The port of web servers: 443 but for tests.
    port: u16,
    failed: Mutex<FailedFetches>,
    fetches: Semaphore,
}

/// Why it is not known now which policy a domain has: mail is put off, not sent without it.
#[derive(Debug, Error)]
pub enum PolicyUnavailable {
    /// So many are fetched that another one has to wait.
    #[error("too many policies of MTA-STS are being fetched at once")]
    TooManyFetches,
    /// What was promised cannot be read.
    #[error("the policy of MTA-STS cannot be read: {0}")]
    Read(#[from] ReadError),
}

impl StsPolicies {
    /// Keeps policies in `store`, and gets them by `poster`.
    #[must_use]
    pub fn new(store: Store, client: HttpClient, port: u16) -> Self {
        Self { store, client, port, failed: Mutex::default(), fetches: Semaphore::new(FETCHES_MAX) }
    }

    /// How it stands with the policy of a domain.
    ///
    /// # Errors
    /// [`Unsure`].
    pub async fn policy_of(
        &self,
        domain: &DomainName,
        resolver: &Resolver,
        now: Timestamp,
    ) -> Result<StsPolicyState, PolicyUnavailable> {
        let kept = store::sts_policy::get(&self.store, domain).await?;
        let holds = kept.filter(|kept| kept.expires_at() > now);
        let announced = match domain.child("_mta-sts") {
            Ok(name) => resolver.txt(&name).await.map(|found| mta_sts::policy_id(&found.data)),
            Err(_) => Ok(None),
        };
        // No announcement, or no answer: what was promised holds (RFC 8461 3.1, 5.1).
        let Ok(Some(id)) = announced else { return Ok(holds.into()) };
        let is_fresh = |kept: &CachedMtaStsPolicy| {
            let age = now.duration_since(kept.fetched_at);
            kept.id == id && age < REFRESH_AFTER && kept.expires_at().duration_since(now) > age
        };
        if holds.as_ref().is_some_and(is_fresh) {
            return Ok(holds.into());
        }
        if let Some(why) = self.recent_failure(domain, now) {
            return Ok(StsPolicyState { fault: holds.is_none().then_some(why), policy: holds });
        }
        let _turn = match (self.fetches.try_acquire(), &holds) {
            (Ok(turn), _) => turn,
            (Err(_), Some(_)) => return Ok(holds.into()),
            (Err(_), None) => return Err(PolicyUnavailable::TooManyFetches),
        };
        match self.fetch_policy(domain, id, now).await {
            Ok(policy) => {
                if let Err(error) = store::sts_policy::put(&self.store, domain, &policy).await {
                    tracing::error!(%error, "a policy of MTA-STS cannot be kept");
                }
                Ok(Some(policy).into())
            }
            Err(error) => {
                tracing::info!(%domain, %error, "the policy of MTA-STS cannot be had");
                metrics::counter!("postrider_mta_sts_fetches_total", "outcome" => "failed").increment(1);
                let why = error.tls_report_failure();
                self.record_failure(domain, (now, why.clone()));
                Ok(StsPolicyState { fault: holds.is_none().then_some(why), policy: holds })
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
            let said = kind.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(PolicyFetchError::ContentType(said));
        }
        let policy = MtaStsPolicy::parse(&answer.body)?;
        metrics::counter!("postrider_mta_sts_fetches_total", "outcome" => "fetched").increment(1);
        Ok(CachedMtaStsPolicy::new(id, policy, &answer.body, now))
    }

    fn recent_failure(&self, domain: &DomainName, now: Timestamp) -> Option<TlsFault> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(domain).filter(|(at, _)| now.duration_since(*at) < FAILURE_TTL).map(|(_, why)| why.clone())
    }

    fn record_failure(&self, domain: &DomainName, (now, why): (Timestamp, TlsFault)) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= FAILED_MAX {
            failed.retain(|_, (at, _)| now.duration_since(*at) < FAILURE_TTL);
            if failed.len() >= FAILED_MAX {
                failed.clear();
            }
        }
        failed.insert(domain.clone(), (now, why));
    }
}
