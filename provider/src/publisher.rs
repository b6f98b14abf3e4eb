//! Publishes records: reads the existing ones, plans the changes, makes them, and reports on each.

use std::time::Duration;

use dns::resolver::Resolver;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::DomainName;
use model::domain_setup::DomainRecord;
use serde::Serialize;
use tokio::time::Instant;

use crate::credentials::ProviderCredentials;
use crate::domain_connect::DomainConnectTemplate;
use crate::fetch::FetchSettings;
use crate::request_signature::RequestKey;
use crate::upstream_error::{ApplyError, UpstreamError, UpstreamFault};
use crate::zone::ProviderZone;
use dns::record_changes::{ChangeAction, MergePolicy, RecordChange, plan_changes};

/// Maximum records of one request, more than any domain needs.
pub const RECORDS_MAX: usize = 32;
/// Timeout of a publication.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A request to publish records.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// The domain; all records are at its name or below.
    pub domain: &'a DomainName,
    /// The zone of the domain, if it is known; otherwise it is looked up.
    pub zone: Option<&'a DomainName>,
    /// The wanted records.
    pub records: &'a [DomainRecord],
    /// The merges with existing records that the customer permits.
    pub merge: MergePolicy,
    /// Plan the changes without making them.
    pub dry_run: bool,
    /// The current time, for signatures of requests.
    pub now: Timestamp,
}

/// The outcome of a planned change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordChangeOutcome {
    /// No change was needed.
    Unchanged,
    Done,
    Failed,
    /// The provider did not respond in time, so the change may have been made.
    Unclear,
    /// Not attempted, because of a dry run, a conflict, or an earlier failure.
    NotDone,
}

/// A planned change and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppliedChange {
    #[serde(flatten)]
    pub change: RecordChange,
    pub outcome: RecordChangeOutcome,
}

/// The result of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishReport {
    /// The changes, in the order of the wanted records.
    pub changes: Vec<AppliedChange>,
    /// True if all wanted records are published now.
    pub applied: bool,
    /// The error that ended the publication.
    pub failure: Option<UpstreamError>,
}

impl PublishReport {
    /// Returns whether a conflict prevented all changes.
    pub fn has_conflict(&self) -> bool {
        self.changes.iter().any(|step| step.change.action == ChangeAction::Conflict)
    }
}

/// Publishes records at DNS providers.
#[derive(Debug, Clone)]
pub struct Publisher {
    pub(crate) resolver: Resolver,
    pub(crate) allow_private: bool,
    pub(crate) template: Option<DomainConnectTemplate>,
    pub(crate) request_key: Option<RequestKey>,
    pub(crate) fetch_settings: FetchSettings,
}

impl Publisher {
    /// Creates a publisher. With `allow_private`, the servers that customers specify can have private addresses.
    pub fn new(resolver: Resolver, allow_private: bool) -> Self {
        Self { resolver, allow_private, template: None, request_key: None, fetch_settings: FetchSettings::default() }
    }

    /// Sets the operator's Domain Connect template, and the key that signs requests for it.
    #[must_use]
    pub fn with_template(self, template: Option<DomainConnectTemplate>, request_key: Option<RequestKey>) -> Self {
        Self { template, request_key, ..self }
    }

    /// Sets how pages are fetched.
    #[must_use]
    pub fn with_fetch_settings(self, web: FetchSettings) -> Self {
        Self { fetch_settings: web, ..self }
    }

    /// Reads the existing records and publishes the wanted ones.
    ///
    /// # Errors
    /// [`ApplyError`] if the publication ended before any change. A later error is in the report.
    pub fn apply<'a>(
        &'a self,
        credentials: &'a ProviderCredentials,
        request: &'a PublishRequest<'a>,
    ) -> BoxFuture<'a, Result<PublishReport, ApplyError>> {
        // An `async fn` is compiled again in each crate that awaits it, including all futures inside: here the hundred
        // providers of dns-update, which would double the compile time of those crates.
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
        let existing = zone.existing_records(wanted).await?;
        let changes = plan_changes(&existing, wanted, request.merge);
        let conflict = changes.iter().any(|change| change.action == ChangeAction::Conflict);
        let idle = request.dry_run || conflict;
        let mut failure = None;
        let mut steps = Vec::with_capacity(changes.len());
        for change in changes {
            let result = match change.action {
                ChangeAction::Skip => Ok(RecordChangeOutcome::Unchanged),
                _ if idle || failure.is_some() => Ok(RecordChangeOutcome::NotDone),
                ChangeAction::Create => zone.create(&change.record).await.map(|()| RecordChangeOutcome::Done),
                ChangeAction::Update => {
                    let old = change.replaces.as_deref().unwrap_or_default();
                    zone.replace(&change.record, old).await.map(|()| RecordChangeOutcome::Done)
                }
                ChangeAction::Conflict => Ok(RecordChangeOutcome::NotDone),
            };
            let outcome = result.unwrap_or_else(|error| {
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
