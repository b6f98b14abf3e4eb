//! The one way through this room: look at what stands, plan, make what is missing, and tell of each record.

use std::time::Duration;

use dns::lookup::Resolver;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::Name;
use mail::setup::Record;
use serde::Serialize;
use tokio::time::Instant;

use crate::connect::Template;
use crate::credentials::Credentials;
use crate::fault::{ApplyError, Fault, UpstreamError};
use crate::fetch::Web;
use crate::signature::RequestKey;
use crate::zone::Zone;
use dns::plan::{Action, Change, Merge, plan};

/// Records of one request. No domain of ours needs as many.
pub const RECORDS_MAX: usize = 32;
/// How long all of it may take.
const BUDGET: Duration = Duration::from_secs(60);

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
    pub(crate) resolver: Resolver,
    pub(crate) allow_private: bool,
    pub(crate) template: Option<Template>,
    pub(crate) request_key: Option<RequestKey>,
    pub(crate) web: Web,
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
