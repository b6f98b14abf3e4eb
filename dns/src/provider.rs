//! Publishing a domain's records where its zone is kept: at a provider, or at a server that takes dynamic updates.
//!
//! ```text
//! Credentials ─┐
//! wanted ──────┼─► Publisher::apply ─► zone (what stands there) ─► plan ─► zone (create, replace) ─► Report
//! domain ──────┘                                                    └─ dry run or conflict ────────► Report
//! ```
//!
//! What stands is read at the provider itself, not in the DNS, where old answers may be kept. [`plan()`] decides and is
//! pure; nothing is done when anything is in conflict. Then each change is made in turn, and the first that fails
//! ends it: the [`Report`] says of each what became of it. As what stands is skipped, applying again goes on where
//! it ended.
//!
//! Without credentials, the customer can be sent to the provider's own page ([`Publisher::connect`]).
//!
//! The providers' interfaces are spoken by dns-update, whose addresses for them are fixed. Three things it does not do
//! as safely as a domain's mail deserves are done here: a text is replaced in one step at Cloudflare
//! (`cloudflare.rs`) and by dynamic update (`rfc2136.rs`), and Route 53's lists are read with alias records in
//! them (`route53.rs`).
//!
//! Limits: 32 records, 15 seconds a step, a minute in all, messages of others cut to 300 characters. Redirects are not
//! followed. Secrets are in no `Debug`, no message and no log.

mod cloudflare;
mod connect;
mod credentials;
mod fault;
mod fetch;
mod plan;
mod quotes;
mod rfc2136;
mod route53;
mod secret;
mod server;
mod signature;
mod zone;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::Name;
use mail::setup::Record;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::lookup::Resolver;
pub use connect::{ConnectError, NoTemplate, Template};
pub use credentials::{Credentials, Field, FieldError, fields};
pub use fault::{ApplyError, Fault, UpstreamError};
pub use fetch::Web;
pub use plan::{Action, Change, Kind, Merge, Standing, plan};
pub use secret::Secret;
pub use server::{ServerAddress, ServerError};
pub use signature::{NoRequestKey, RequestKey};
use zone::Zone;

/// Records of one request. No domain of ours needs as many.
pub const RECORDS_MAX: usize = 32;
/// How long all of it may take.
const BUDGET: Duration = Duration::from_secs(60);

/// Names one provider a line: its variant, its word in requests, its name for people.
macro_rules! providers {
    ($($variant:ident $word:literal $shown:literal,)*) => {
        /// Where a zone is kept.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub enum Provider {
            $(#[doc = $shown] #[serde(rename = $word)] $variant,)*
        }

        impl Provider {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word for it in requests.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            const fn shown(self) -> &'static str {
                match self { $(Self::$variant => $shown,)* }
            }
        }
    };
}

providers! {
    Cloudflare "cloudflare" "Cloudflare",
    Route53 "route53" "Route 53",
    Digitalocean "digitalocean" "DigitalOcean",
    Hetzner "hetzner" "Hetzner",
    Gandi "gandi" "Gandi",
    Rfc2136 "rfc2136" "the name server",
    Bunny "bunny" "bunny.net",
    Desec "desec" "deSEC",
    Dnsimple "dnsimple" "DNSimple",
    Gcore "gcore" "Gcore",
    Godaddy "godaddy" "GoDaddy",
    Hostinger "hostinger" "Hostinger",
    Infomaniak "infomaniak" "Infomaniak",
    Ionos "ionos" "IONOS",
    Linode "linode" "Linode",
    NameCom "namecom" "Name.com",
    Netlify "netlify" "Netlify",
    Ns1 "ns1" "NS1",
    Porkbun "porkbun" "Porkbun",
    Scaleway "scaleway" "Scaleway",
    Vercel "vercel" "Vercel",
    Vultr "vultr" "Vultr",
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

/// No provider has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such provider")]
pub struct NoSuchProvider;

impl FromStr for Provider {
    type Err = NoSuchProvider;

    fn from_str(text: &str) -> Result<Self, NoSuchProvider> {
        Self::ALL.iter().copied().find(|provider| provider.as_str() == text).ok_or(NoSuchProvider)
    }
}

/// What is to be published, and how.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The domain; all records are its own or below it.
    pub domain: &'a Name,
    /// The zone that it is in, if the caller knows; it is found otherwise.
    pub zone: Option<&'a Name>,
    /// The records that are to stand.
    pub wanted: &'a [Record],
    /// What may be put together with what is there.
    pub merge: Merge,
    /// Only look and say what would be done.
    pub dry_run: bool,
    /// The time, for signatures.
    pub now: Timestamp,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// There was nothing to do.
    Unchanged,
    /// It was made.
    Done,
    /// The provider refused it.
    Failed,
    /// The provider gave no answer in time: it may have been made.
    Unclear,
    /// It was not tried: a dry run, a conflict, or a failure before it.
    NotDone,
}

/// A change and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The change.
    #[serde(flatten)]
    pub change: Change,
    /// What became of it.
    pub outcome: Outcome,
}

/// What was done, record by record in the order wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Each record's change.
    pub steps: Vec<Step>,
    /// Whether all that is wanted stands now.
    pub applied: bool,
    /// What ended it early.
    pub failure: Option<UpstreamError>,
}

impl Report {
    /// Whether anything is in the way, so that nothing was done.
    #[must_use]
    pub fn has_conflict(&self) -> bool {
        self.steps.iter().any(|step| step.change.action == Action::Conflict)
    }
}

/// Publishes records; built once.
#[derive(Debug, Clone)]
pub struct Publisher {
    resolver: Resolver,
    allow_private: bool,
    template: Option<Template>,
    request_key: Option<RequestKey>,
    web: Web,
}

impl Publisher {
    /// A publisher. With `allow_private`, servers that customers name may have private addresses.
    #[must_use]
    pub fn new(resolver: Resolver, allow_private: bool) -> Self {
        Self { resolver, allow_private, template: None, request_key: None, web: Web::default() }
    }

    /// The same, with the operator's template for Domain Connect, and the key that signs requests for it.
    #[must_use]
    pub fn with_template(self, template: Option<Template>, request_key: Option<RequestKey>) -> Self {
        Self { template, request_key, ..self }
    }

    /// The same, reaching pages in another way.
    #[must_use]
    pub fn with_web(self, web: Web) -> Self {
        Self { web, ..self }
    }

    /// Looks at what stands, and makes what is wanted stand.
    ///
    /// # Errors
    /// [`ApplyError`] when it ended before anything was changed. What ended it later is in the report.
    pub fn apply<'a>(
        &'a self,
        credentials: &'a Credentials,
        request: &'a Request<'a>,
    ) -> BoxFuture<'a, Result<Report, ApplyError>> {
        // An `async fn` is compiled anew in each crate that awaits it, and with it all that it awaits: here the
        // hundred providers of dns-update, half of what those crates have to compile.
        Box::pin(self.change(credentials, request))
    }

    async fn change(&self, credentials: &Credentials, request: &Request<'_>) -> Result<Report, ApplyError> {
        let wanted = request.wanted;
        let deadline = Instant::now() + BUDGET;
        let mut zone = Zone::open(self, credentials, request, deadline).await?;
        let standing = zone.standing(wanted).await?;
        let changes = plan(&standing, wanted, request.merge);
        let conflict = changes.iter().any(|change| change.action == Action::Conflict);
        let idle = request.dry_run || conflict;
        let mut failure = None;
        let mut steps = Vec::with_capacity(changes.len());
        for change in changes {
            let made = match change.action {
                Action::Skip => Ok(Outcome::Unchanged),
                _ if idle || failure.is_some() => Ok(Outcome::NotDone),
                Action::Create => zone.create(&change.record).await.map(|()| Outcome::Done),
                Action::Update => {
                    let old = change.replaces.as_deref().unwrap_or_default();
                    zone.replace(&change.record, old).await.map(|()| Outcome::Done)
                }
                Action::Conflict => Ok(Outcome::NotDone),
            };
            let outcome = made.unwrap_or_else(|error| {
                let unclear = error.fault == Fault::Timeout;
                failure = Some(error);
                if unclear { Outcome::Unclear } else { Outcome::Failed }
            });
            steps.push(Step { change, outcome });
        }
        let applied = steps.iter().all(|step| matches!(step.outcome, Outcome::Unchanged | Outcome::Done));
        Ok(Report { steps, applied, failure })
    }
}
