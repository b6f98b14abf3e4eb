//! The background tasks of the mail server: those of delivery, of events and of accounts.

use std::sync::Arc;

use events::owner_alerts::OwnerAlerter;
use model::id::AccountId;
use queue::delivery::tls_reporter::{TlsReportSettings, TlsReporter};
use queue::intake::account_limits::AccountLimits;
use queue::services::Services;

use crate::retention::RetentionJob;
use crate::subsystems::{AccountSubsystems, Subsystems};

/// Starts delivery and all background tasks. TLS reports are sent if `tls_reports` is set.
pub fn start(queue: &Subsystems, accounts: &AccountSubsystems, tls_reports: Option<TlsReportSettings>) {
    start_delivery(queue);
    start_accounts(queue, accounts, tls_reports);
}

/// Starts delivery, the tasks of events, and retention.
pub fn start_delivery(queue: &Subsystems) {
    let Subsystems { services, delivery, events, .. } = queue;
    services.spawn(RetentionJob::new(services.clone(), Arc::clone(&delivery.policy)).run());
    events::background_tasks::start(services, events);
    queue::background_tasks::start(services, delivery);
}

/// Starts the tasks of accounts: scheduled emails, automations, domains, alerts and TLS reports.
pub fn start_accounts(queue: &Subsystems, accounts: &AccountSubsystems, tls_reports: Option<TlsReportSettings>) {
    let Subsystems { services, delivery, events, .. } = queue;
    let AccountSubsystems { intake, domains, .. } = accounts;
    services.spawn(Arc::clone(intake).run_scheduled_release());
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
