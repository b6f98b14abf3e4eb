//! The subsystems of the affiliate program: one list of what exists, how it is built, and which loops it runs.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use accounts::subsystems::{AccountSubsystems, Subsystems};
use futures_util::future::{BoxFuture, join, join_all, select};
use model::id::{AccountId, PayoutRunId};
use queue::services::Services;
use tokio::sync::Notify;

use crate::audit::runner::AuditRunner;
use crate::context::Context;
use crate::error::AffiliateError;
use crate::ledger::ingest::FactIngest;
use crate::partner_emails::PartnerEmails;
use crate::partner_emails::sender::SenderRouting;
use crate::partners::changes::Partners;
use crate::payouts::jobs::PayoutJobs;
use crate::payouts::reconcile::finish_and_reconcile;
use crate::payouts::runs::DraftResult;
use crate::portal::host::PortalHosts;
use crate::program::onboarding::Onboarding;
use crate::reconciliation::Reconciliation;
use crate::stripe::client::StripeProcessor;
use crate::stripe::enrichment::Enrichment;
use crate::stripe::events::ProcessorEvents;

/// All subsystems of the affiliate program.
#[derive(Clone)]
pub struct AffiliateService {
    /// For operations of the ledger: their few partner emails wait for the sender's next poll.
    pub ledger: Context,
    /// For all other operations: each commit wakes the sender of partner emails.
    pub context: Context,
    pub onboarding: Onboarding,
    pub partners: Partners,
    pub emails: PartnerEmails,
    pub hosts: PortalHosts,
    pub events: ProcessorEvents,
    pub audits: Arc<AuditRunner>,
    pub processor: StripeProcessor,
}

impl AffiliateService {
    /// Creates the subsystems on top of those of the mail queue. Clones share their state.
    pub fn new(queue: &Subsystems, accounts: &AccountSubsystems) -> Self {
        let emails_wakeup = Arc::<Notify>::default();
        // The ledger commits for every click, so its few partner emails wait for the sender's next poll.
        let ledger = new_context(&queue.services, None);
        // Sent after every commit: that costs no more than checking whether an email was queued.
        let context = new_context(&queue.services, Some(Arc::clone(&emails_wakeup)));
        let of = || context.clone();
        let AccountSubsystems { vault, webhooks, senders: sender_authorization, limits, .. } = accounts;
        let sealing = || Arc::clone(vault);
        let processor = StripeProcessor { context: of(), webhooks: Arc::clone(webhooks), vault: sealing() };
        let senders = SenderRouting { context: of(), senders: Arc::clone(sender_authorization) };
        let hosts = PortalHosts {
            context: of(),
            links: accounts.links.clone(),
            domains: Arc::clone(&accounts.domains),
            senders: Arc::clone(sender_authorization),
        };
        let partners = Partners {
            context: of(),
            vault: sealing(),
            storage_quotas: Arc::clone(&limits.storage),
            senders: senders.clone(),
            processor: processor.clone(),
            owner_alerts: queue.events.owner_alerts.clone(),
        };
        Self {
            onboarding: Onboarding {
                context: of(),
                vault: sealing(),
                hosts: hosts.clone(),
                processor: processor.clone(),
            },
            emails: PartnerEmails {
                context: of(),
                intake: Arc::clone(&accounts.intake),
                wakeup: emails_wakeup,
                senders,
                hosts: hosts.clone(),
            },
            events: ProcessorEvents {
                context: of(),
                vault: sealing(),
                storage_quotas: Arc::clone(&limits.storage),
                ingest: FactIngest::new(&ledger, Some(Enrichment::new(&processor))),
            },
            audits: Arc::default(),
            ledger,
            context,
            partners,
            hosts,
            processor,
        }
    }

    /// Completes a draft and reconciles its charges, for at most 20 seconds; the rest is reconciled in the background.
    pub async fn finish_draft(&self, account: AccountId, id: PayoutRunId) -> Result<DraftResult, AffiliateError> {
        finish_and_reconcile(&self.ledger, &self.processor, account, id).await
    }

    /// Runs the loops over the partitions that this node owns, until `stop`. Back-fills store their position on `stop`,
    /// so they are awaited; the other loops are dropped.
    pub async fn run<F: Future<Output = ()> + Send>(&self, stop: impl Fn() -> F) {
        let (reconciliation, jobs) = (self.reconciliation(), self.payout_jobs());
        let loops: Vec<BoxFuture<'_, ()>> = vec![
            self.ledger.run_hold_release(),
            reconciliation.run(),
            jobs.run(),
            self.ledger.run_click_counter(),
            self.emails.run(),
        ];
        let stopped = pin!(stop());
        let others = async { drop(select(join_all(loops), stopped).await) };
        join(self.processor.run_backfills(stop()), others).await;
    }

    /// Returns the reconciliation with the programs' processors.
    pub fn reconciliation(&self) -> Reconciliation<'_> {
        Reconciliation::new(&self.ledger, &self.processor)
    }

    /// Returns the payout jobs, with transfers by the programs' processors.
    pub fn payout_jobs(&self) -> PayoutJobs<'_> {
        PayoutJobs::new(&self.ledger, &self.processor)
    }
}

/// Creates a context whose commits wake the outbox dispatcher, and the sender of partner emails if it is given.
fn new_context(services: &Services, emails: Option<Arc<Notify>>) -> Context {
    let outbox = Arc::clone(&services.outbox_wakeup);
    let committed = move || {
        outbox.notify_one();
        emails.iter().for_each(|emails| emails.notify_one());
    };
    Context::new(services, Arc::new(committed))
}
