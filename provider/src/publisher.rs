//! The one way through this room: look at what stands, plan, make what is missing, and tell of each record.

use std::time::Duration;

use dns::lookup::Resolver;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::DomainName;
use mail::setup::DomainRecord;
use serde::Serialize;
use tokio::time::Instant;

use crate::connect::DomainConnectTemplate;
use crate::credentials::ProviderCredentials;
use crate::fault::{ApplyError, UpstreamError, UpstreamFault};
use crate::fetch::FetchSettings;
use crate::signature::RequestKey;
use crate::zone::ProviderZone;
use dns::plan::{ChangeAction, MergePolicy, RecordChange, plan_changes};

/// Records of one request. No domain of ours needs as many.
pub const RECORDS_MAX: usize = 32;
/// How long all of it may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What is to be published, and how.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// The domain; all records are its own or below it.
    pub domain: &'a DomainName,
    /// The zone that it is in, if the caller knows; it is found otherwise.
    pub zone: Option<&'a DomainName>,
    /// The records that are to stand.
    pub records: &'a [DomainRecord],
    /// What may be put together with what is there.
    pub merge: MergePolicy,
    /// Only look and say what would be done.
    pub dry_run: bool,
    /// The time, for signatures.
    pub now: Timestamp,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordChangeOutcome {
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
pub struct AppliedChange {
    /// The change.
    #[serde(flatten)]
    pub change: RecordChange,
    /// What became of it.
    pub outcome: RecordChangeOutcome,
}

/// What was done, record by record in the order wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// Each record's change.
    pub changes: Vec<AppliedChange>,
    /// Whether all that is wanted stands now.
    pub applied: bool,
    /// What ended it early.
    pub failure: Option<UpstreamError>,
}

impl PublishReport {
    /// Whether anything is in the way, so that nothing was done.
    #[must_use]
    pub fn has_conflict(&self) -> bool {
        self.changes.iter().any(|step| step.change.action == ChangeAction::Conflict)
    }
}

/// Publishes records; built once.
#[derive(Debug, Clone)]
pub struct Publisher {
    pub(crate) resolver: Resolver,
    pub(crate) allow_private: bool,
    pub(crate) template: Option<DomainConnectTemplate>,
    pub(crate) request_key: Option<RequestKey>,
    pub(crate) fetch_settings: FetchSettings,
}

impl Publisher {
    /// A publisher. With `allow_private`, servers that customers name may have private addresses.
    #[must_use]
    pub fn new(resolver: Resolver, allow_private: bool) -> Self {
        Self { resolver, allow_private, template: None, request_key: None, fetch_settings: FetchSettings::default() }
    }

    /// The same, with the operator's template for Domain Connect, and the key that signs requests for it.
    #[must_use]
    pub fn with_template(self, template: Option<DomainConnectTemplate>, request_key: Option<RequestKey>) -> Self {
        Self { template, request_key, ..self }
    }

    /// The same, reaching pages in another way.
    #[must_use]
    pub fn with_fetch_settings(self, web: FetchSettings) -> Self {
        Self { fetch_settings: web, ..self }
    }

    /// Looks at what stands, and makes what is wanted stand.
    ///
    /// # Errors
    /// [`ApplyError`] when it ended before anything was changed. What ended it later is in the report.
    pub fn apply<'a>(
        &'a self,
        credentials: &'a ProviderCredentials,
        request: &'a PublishRequest<'a>,
    ) -> BoxFuture<'a, Result<PublishReport, ApplyError>> {
        // An `async fn` is compiled anew in each crate that awaits it, and with it all that it awaits: here the
        // hundred providers of dns-update, half of what those crates have to compile.
        Box::pin(self.apply_changes(credentials, request))
    }

    async fn apply_changes(
        &self,
        credentials: &ProviderCredentials,
        request: &PublishRequest<'_>,
    ) -> Result<PublishReport, ApplyError> {
        let wanted = request.records;
        let deadline = Instant::now() + TIMEOUT;
        let mut zone = ProviderZone::open(self, credentials, request, deadline).await?;
        let standing = zone.existing_records(wanted).await?;
        let changes = plan_changes(&standing, wanted, request.merge);
        let conflict = changes.iter().any(|change| change.action == ChangeAction::Conflict);
        let idle = request.dry_run || conflict;
        let mut failure = None;
        let mut steps = Vec::with_capacity(changes.len());
        for change in changes {
            let made = match change.action {
                ChangeAction::Skip => Ok(RecordChangeOutcome::Unchanged),
                _ if idle || failure.is_some() => Ok(RecordChangeOutcome::NotDone),
                ChangeAction::Create => zone.create(&change.record).await.map(|()| RecordChangeOutcome::Done),
                ChangeAction::Update => {
                    let old = change.replaces.as_deref().unwrap_or_default();
                    zone.replace(&change.record, old).await.map(|()| RecordChangeOutcome::Done)
                }
                ChangeAction::Conflict => Ok(RecordChangeOutcome::NotDone),
            };
            let outcome = made.unwrap_or_else(|error| {
                let unclear = error.fault == UpstreamFault::Timeout;
                failure = Some(error);
                if unclear { RecordChangeOutcome::Unclear } else { RecordChangeOutcome::Failed }
            });
            steps.push(AppliedChange { change, outcome });
        }
        let applied =
            steps.iter().all(|step| matches!(step.outcome, RecordChangeOutcome::Unchanged | RecordChangeOutcome::Done));
        Ok(PublishReport { changes: steps, applied, failure })
    }
}
