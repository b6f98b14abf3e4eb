//! The background jobs of accounts: scheduled emails, automations, domains, alerts and TLS reports.

use std::sync::Arc;

use mail::id::AccountId;

use crate::automations::runner::AutomationRunner;
use crate::intake::Intake;
use crate::owner_alerts::OwnerAlerter;
use crate::tls_reporter::{TlsReportSettings, TlsReporter};

/// Starts the jobs. TLS reports are sent if `tls_reports` is set.
pub fn start_account_jobs(intake: &Intake, tls_reports: Option<TlsReportSettings>) {
    let (services, domains) = (&intake.services, &intake.domains);
    services.spawn(intake.clone().run_scheduled_release());
    services.spawn(AutomationRunner::new(intake).run());
    services.spawn(OwnerAlerter::new(intake.clone()).run());
    if let Some(settings) = tls_reports {
        services.spawn(TlsReporter::new(intake.clone(), settings).run());
    }
    services.spawn(Arc::clone(intake.credentials()).run());
    services.spawn(Arc::clone(intake.suppression_importer()).run());
    services.spawn(Arc::clone(domains).run_domain_checks());
    let (accounts, checked) = (intake.clone(), Arc::clone(domains));
    services.spawn(async move { checked.run_claim_checks(|account| domains_max(&accounts, account)).await });
}

/// Number of domains that an account's plan includes; 0 for a deleted account.
async fn domains_max(intake: &Intake, account: AccountId) -> Option<u32> {
    match store::account::get(&intake.services.store, account).await {
        Ok(Some(account)) => intake.plans().of(account.plan).domains,
        _ => Some(0),
    }
}
