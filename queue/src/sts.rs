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
use mail::address::Name;
use mail::mta_sts::{self, KeptPolicy, POLICY_BYTES_MAX, Policy, PolicyError};
use mail::tls_report::{Fault, ResultType};
use store::engine::{ReadError, Store};
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::courier::http::{Get, PostError, Poster};

/// How long a fetch may take (RFC 8461 3.3 suggests a minute; mail waits for it).
const FETCH_TIMEOUT: Duration = Duration::from_secs(20);
/// How long is waited after a fetch that failed (RFC 8461 3.3: five minutes or more).
const REST: SignedDuration = SignedDuration::from_mins(5);
/// How old a policy may get before it is looked at again.
const FRESH: SignedDuration = SignedDuration::from_hours(24);
/// Policies fetched at once: web servers that say nothing hold up half of the look-ups, and not all.
const FETCHES_MAX: usize = 256;
/// Domains whose policy could not be fetched that are remembered.
const FAILED_MAX: usize = 10_000;

/// Why a policy that was announced is not to be had (RFC 8460 4.3).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FetchError {
    /// No answer.
    #[error("{0}")]
    Web(#[from] PostError),
    /// Another answer than the policy: redirects are not followed (RFC 8461 3.3).
    #[error("its web server answers {0}")]
    Status(u16),
    /// Something else than a text (RFC 8461 3.2): a page for people, most likely.
    #[error("its web server answers with {0}, and not with text/plain")]
    Media(String),
    /// It breaks off, or is too long.
    #[error("the policy did not come to its end")]
    Cut,
    /// It is none.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl FetchError {
    /// The same in the words of reports (RFC 8460 4.3).
    fn told(&self) -> Fault {
        let result = match self {
            // What rustls says of certificates.
            Self::Web(PostError::Lost(why)) if why.contains("invalid peer certificate") => {
                ResultType::StsWebpkiInvalid
            }
            Self::Web(_) | Self::Status(_) | Self::Cut => ResultType::StsPolicyFetchError,
            Self::Media(_) | Self::Policy(_) => ResultType::StsPolicyInvalid,
        };
        Fault::new(result, self.to_string())
    }
}

/// How it stands with a domain's policy.
#[derive(Debug, Default)]
pub struct Standing {
    /// The one that holds now; none when it has none, or none that could be had.
    pub policy: Option<KeptPolicy>,
    /// Why one that is announced could not be had.
    pub trouble: Option<Fault>,
}

impl From<Option<KeptPolicy>> for Standing {
    fn from(policy: Option<KeptPolicy>) -> Self {
        Self { policy, trouble: None }
    }
}

/// Domains whose policy could not be had: when, and why.
type Failed = HashMap<Name, (Timestamp, Fault)>;

/// Finds policies.
#[derive(Debug)]
pub struct StsPolicies {
    store: Store,
    poster: Poster,
    /// The port of web servers: 443 but for tests.
    port: u16,
    failed: Mutex<Failed>,
    fetches: Semaphore,
}

/// Why it is not known now which policy a domain has: mail is put off, not sent without it.
#[derive(Debug, Error)]
pub enum Unsure {
    /// So many are fetched that another one has to wait.
    #[error("too many policies of MTA-STS are being fetched at once")]
    Crowded,
    /// What was promised cannot be read.
    #[error("the policy of MTA-STS cannot be read: {0}")]
    Unread(#[from] ReadError),
}

impl StsPolicies {
    /// Keeps policies in `store`, and gets them by `poster`.
    #[must_use]
    pub fn new(store: Store, poster: Poster, port: u16) -> Self {
        Self { store, poster, port, failed: Mutex::default(), fetches: Semaphore::new(FETCHES_MAX) }
    }

    /// How it stands with the policy of a domain.
    ///
    /// # Errors
    /// [`Unsure`].
    pub async fn of(&self, domain: &Name, resolver: &Resolver, now: Timestamp) -> Result<Standing, Unsure> {
        let kept = store::sts_policy::get(&self.store, domain).await?;
        let holds = kept.filter(|kept| kept.holds_until() > now);
        let announced = match domain.child("_mta-sts") {
            Ok(name) => resolver.txt(&name).await.map(|found| mta_sts::announced(&found.data)),
            Err(_) => Ok(None),
        };
        // No announcement, or no answer: what was promised holds (RFC 8461 3.1, 5.1).
        let Ok(Some(id)) = announced else { return Ok(holds.into()) };
        let is_fresh = |kept: &KeptPolicy| {
            let age = now.duration_since(kept.fetched_at);
            kept.id == id && age < FRESH && kept.holds_until().duration_since(now) > age
        };
        if holds.as_ref().is_some_and(is_fresh) {
            return Ok(holds.into());
        }
        if let Some(why) = self.rests(domain, now) {
            return Ok(Standing { trouble: holds.is_none().then_some(why), policy: holds });
        }
        let _turn = match (self.fetches.try_acquire(), &holds) {
            (Ok(turn), _) => turn,
            (Err(_), Some(_)) => return Ok(holds.into()),
            (Err(_), None) => return Err(Unsure::Crowded),
        };
        match self.fetch(domain, id, now).await {
            Ok(policy) => {
                if let Err(error) = store::sts_policy::put(&self.store, domain, &policy).await {
                    tracing::error!(%error, "a policy of MTA-STS cannot be kept");
                }
                Ok(Some(policy).into())
            }
            Err(error) => {
                tracing::info!(%domain, %error, "the policy of MTA-STS cannot be had");
                metrics::counter!("postrider_mta_sts_fetches_total", "outcome" => "failed").increment(1);
                let why = error.told();
                self.rest(domain, (now, why.clone()));
                Ok(Standing { trouble: holds.is_none().then_some(why), policy: holds })
            }
        }
    }

    async fn fetch(&self, domain: &Name, id: String, now: Timestamp) -> Result<KeptPolicy, FetchError> {
        let port = if self.port == 443 { String::new() } else { format!(":{}", self.port) };
        let get = Get {
            url: format!("https://mta-sts.{domain}{port}/.well-known/mta-sts.txt"),
            headers: Vec::new(),
            timeout: FETCH_TIMEOUT,
            answer_bytes_max: POLICY_BYTES_MAX,
        };
        let answer = self.poster.get(get).await?;
        if answer.status != 200 {
            return Err(FetchError::Status(answer.status));
        }
        if !answer.is_whole {
            return Err(FetchError::Cut);
        }
        let media = answer.content_type.unwrap_or_default();
        let kind = media.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("text/plain") {
            let said = kind.chars().filter(|c| !c.is_control()).take(60).collect();
            return Err(FetchError::Media(said));
        }
        let policy = Policy::read(&answer.body)?;
        metrics::counter!("postrider_mta_sts_fetches_total", "outcome" => "fetched").increment(1);
        Ok(KeptPolicy::new(id, policy, &answer.body, now))
    }

    fn rests(&self, domain: &Name, now: Timestamp) -> Option<Fault> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get(domain).filter(|(at, _)| now.duration_since(*at) < REST).map(|(_, why)| why.clone())
    }

    fn rest(&self, domain: &Name, (now, why): (Timestamp, Fault)) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.len() >= FAILED_MAX {
            failed.retain(|_, (at, _)| now.duration_since(*at) < REST);
            if failed.len() >= FAILED_MAX {
                failed.clear();
            }
        }
        failed.insert(domain.clone(), (now, why));
    }
}
