//! The background tasks of the queue, in one list.

use std::sync::Arc;

use model::id::AccountId;

use crate::account_limits::AccountLimits;
use crate::deadlines::DeadlineJob;
use crate::delays::DelayRecorder;
use crate::dsn_builder::DsnReporter;
use crate::intake::ScheduledRelease;
use crate::owner_alerts::OwnerAlerter;
use crate::queue_counter::run_queue_counter;
use crate::queue_loader::QueueLoader;
use crate::retention::RetentionJob;
use crate::services::Services;
use crate::subsystems::{AccountSubsystems, DeliverySubsystems, Subsystems};
use crate::tls_reporter::{TlsReportSettings, TlsReporter};

/// Starts delivery and all background tasks. TLS reports are sent if `tls_reports` is set.
pub fn start(queue: &Subsystems, accounts: &AccountSubsystems, tls_reports: Option<TlsReportSettings>) {
    start_delivery(queue);
    start_accounts(queue, accounts, tls_reports);
}

/// Starts delivery and the tasks of events.
pub fn start_delivery(queue: &Subsystems) {
    let Subsystems { services, delivery, events, .. } = queue;
    let DeliverySubsystems { policy, dispatcher, pending_dsns, .. } = delivery;
    let delays = Arc::new(DelayRecorder::new(
        services.clone(),
        Arc::clone(&dispatcher.agent),
        Arc::clone(policy),
        Arc::clone(&dispatcher.deadlines),
        Arc::clone(pending_dsns),
    ));
    let dsn_reporter = DsnReporter::new(
        services.clone(),
        Arc::clone(pending_dsns),
        Arc::clone(dispatcher),
        Arc::clone(policy),
        delivery.hostname.clone(),
    );
    services.spawn(RetentionJob::new(services.clone(), Arc::clone(policy)).run());
    services.spawn(Arc::clone(&events.outbox).run());
    services.outbox_wakeup.notify_one();
    services.spawn(Arc::new(dsn_reporter).run());
    services.spawn(Arc::clone(&events.analytics).run());
    events.analytics.wake();
    services.spawn(Arc::clone(&events.exporter).run());
    services.spawn(Arc::clone(&events.webhooks).run());
    services.spawn(Arc::clone(&delivery.tls_stats).run());
    services.spawn(Arc::clone(&delivery.admin).run());
    services.spawn(Arc::new(DeadlineJob::new(services.clone(), dispatcher, Arc::clone(&delays))).run());
    services.spawn(delays.run());
    services.spawn(run_queue_counter(services.clone()));
    services.spawn(Arc::clone(&delivery.holds).log_queue_hold());
    services.spawn(Arc::new(QueueLoader::new(services.clone(), Arc::clone(dispatcher))).run());
}

/// Starts the tasks of accounts: scheduled emails, automations, domains, alerts and TLS reports.
pub fn start_accounts(queue: &Subsystems, accounts: &AccountSubsystems, tls_reports: Option<TlsReportSettings>) {
    let Subsystems { services, delivery, events, .. } = queue;
    let AccountSubsystems { intake, domains, .. } = accounts;
    services.spawn(ScheduledRelease::new(Arc::clone(intake)).run());
    services.spawn(accounts.automations.clone().run());
    let alerter = OwnerAlerter::new(&events.owner_alerts, Arc::clone(intake), domains.facts().clone());
    services.spawn(alerter.run());
    if let Some(settings) = tls_reports {
        services.spawn(TlsReporter::new(Arc::clone(intake), delivery, settings).run());
    }
    services.spawn(Arc::clone(&accounts.credentials).run());
    services.spawn(Arc::clone(&accounts.suppression_importer).run());
    services.spawn(Arc::clone(domains).run_domain_checks());
    let (checked, of, limits) = (Arc::clone(domains), services.clone(), Arc::clone(&accounts.limits));
    services.spawn(async move { checked.claims.run_checks(|account| domains_max(&of, &limits, account)).await });
}

/// Number of domains that an account's plan includes; 0 for a deleted account.
async fn domains_max(services: &Services, limits: &AccountLimits, account: AccountId) -> Option<u32> {
    match store::account::get(&services.store, account).await {
        Ok(Some(account)) => limits.plans.of(account.plan).domains,
        _ => Some(0),
    }
}
