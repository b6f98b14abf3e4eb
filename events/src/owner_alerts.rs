//! Owner alerts: system mail to an account's owner. It reports a failing or disabled webhook endpoint, a claim of a
//! domain by another account, or an application to the partner program.
//!
//! ```text
//! attempt committed | claim proven ─►[ … + alert ] ─► poll due alerts of own partitions ─►[ email accepted - alert ]
//! ```
//!
//! Alerts are sent like other system mail: from the sandbox sender's domain, as the account that has it. Where no such
//! sender exists, the operator's log reports it; the endpoint's own fields show the failure anyway. Transient errors
//! are retried for up to a day.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::account::Account;
use model::affiliate::web_origin;
use model::domain_setup::ServiceHosts;
use model::id::{PartnerId, WebhookId};
use model::owner_alert::{AlertSubject, OwnerAlert, WebhookAlert};
use model::system_email::SystemEmail;
use model::timestamp;
use queue::intake::sender_authorization::sibling_address;
use queue::intake::submit_error::SubmitError;
use queue::intake::system_mailer::SystemMailer;
use queue::intake::{Intake, SubmitReceipt};
use queue::scheduler::partition_timers::PartitionTimers;
use queue::services::Services;
use store::engine::{Batch, CommitError};
use store::owner_alert::QueuedOwnerAlert;

use crate::owner_alert_queue::OwnerAlertQueue;

/// Local parts of the sender. The second one is used if the first is the sandbox sender itself, which only reaches
/// owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "webhooks"];
/// Alerts of a partition read at once.
const PAGE_ALERTS: usize = 50;
/// Delay before a transient error is retried.
const RETRY_DELAY: Duration = Duration::from_secs(60);
/// Age at which an alert with transient errors is given up.
const RETRY_FOR: Duration = Duration::from_secs(24 * 3600);
/// Interval for polling all partitions, because other nodes may add alerts.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Error of sending an alert.
enum OwnerAlertError {
    Permanent(String),
    /// Worth a retry.
    Transient(String),
}

/// The store accepts no commit now; the alert stays where it is.
struct StoreUnavailable;

fn transient(error: &dyn std::fmt::Display) -> OwnerAlertError {
    OwnerAlertError::Transient(error.to_string())
}

/// Sends owner alerts.
pub struct OwnerAlerter {
    services: Services,
    /// Accepts the mail of alerts.
    intake: Arc<Intake>,
    facts: ServiceHosts,
    timers: Arc<PartitionTimers>,
}

impl OwnerAlerter {
    pub fn new(queue: &OwnerAlertQueue, intake: Arc<Intake>, facts: ServiceHosts) -> Self {
        Self { services: queue.services.clone(), intake, facts, timers: Arc::clone(&queue.timers) }
    }

    /// Sends due alerts until shutdown.
    pub async fn run(self) {
        while !self.services.stop.is_cancelled() {
            for partition in self.timers.due_or_wait(&self.services, Some(POLL_INTERVAL)).await {
                self.send_due_alerts(partition).await;
            }
        }
    }

    async fn send_due_alerts(&self, partition: u16) {
        let (now, appointments) = (self.services.clock.now(), &self.timers);
        appointments.begin_scan(partition);
        match store::owner_alert::list_due(&self.services.store, partition, now, PAGE_ALERTS).await {
            Ok(due) => {
                for (_, error) in &due.damaged {
                    tracing::error!(%error, partition, "cannot read an owner alert; skipping it");
                }
                let (is_full, mut has_failed) = (due.found.len() == PAGE_ALERTS, false);
                for found in due.found {
                    match self.send_or_defer_alert(&found).await {
                        Ok(next) => next.into_iter().for_each(|next| appointments.schedule(partition, next)),
                        Err(StoreUnavailable) => has_failed = true,
                    }
                }
                let next = match (has_failed, is_full) {
                    // Do not retry at once while the store rejects commits.
                    (true, _) => Some(self.services.clock.after(RETRY_DELAY)),
                    (false, true) => Some(now),
                    (false, false) => due.next,
                };
                next.into_iter().for_each(|next| appointments.schedule(partition, next));
            }
            Err(error) => {
                store::warn_unless_away!(self.services.store, %error, "cannot read owner alerts; retrying");
                appointments.schedule(partition, self.services.clock.after(RETRY_DELAY));
            }
        }
    }

    /// Sends or defers one alert. Returns the time of the next try if it was deferred.
    async fn send_or_defer_alert(&self, found: &QueuedOwnerAlert) -> Result<Option<Timestamp>, StoreUnavailable> {
        let (notice, now) = (&found.notice, self.services.clock.now());
        let reason = match self.submit_alert(found).await {
            Ok(()) => return Ok(None),
            Err(reason) => reason,
        };
        let mut batch = Batch::progress();
        let end = notice.since.checked_add(RETRY_FOR).unwrap_or(Timestamp::MAX);
        let next = match reason {
            OwnerAlertError::Transient(_) if now < end => {
                let next = self.services.clock.after(RETRY_DELAY);
                found.defer(&mut batch, next);
                Some(next)
            }
            OwnerAlertError::Transient(cause) | OwnerAlertError::Permanent(cause) => {
                tracing::warn!(%cause, account.id = %notice.account, about = %notice.about, "owner alert not sent");
                found.remove(&mut batch);
                None
            }
        };
        match self.services.store.commit(batch).await {
            Ok(()) => Ok(next),
            // Another node sent or deferred it.
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(_) => Err(StoreUnavailable),
        }
    }

    /// Submits the email and deletes the alert in the same commit.
    async fn submit_alert(&self, found: &QueuedOwnerAlert) -> Result<(), OwnerAlertError> {
        let notice = &found.notice;
        let mailer = self.alert_mailer().await?;
        let owner =
            store::account::get(&self.services.store, notice.account).await.map_err(|error| transient(&error))?;
        let owner = owner.ok_or_else(|| OwnerAlertError::Permanent("the account no longer exists".to_owned()))?;
        let extend_commit = |outcomes: &[Result<SubmitReceipt, SubmitError>], batch: &mut Batch| {
            // A suppressed owner is not mailed: the alert is done then, too.
            if outcomes.iter().all(|outcome| matches!(outcome, Ok(_) | Err(SubmitError::Suppressed { .. }))) {
                found.remove(batch);
            }
        };
        let email = alert_email(&owner, notice, &self.facts, self.intake.links.base_url());
        match mailer.send_with(&self.intake, email, &extend_commit).await {
            Ok(None | Some(Ok(_) | Err(SubmitError::Suppressed { .. }))) => Ok(()),
            Ok(Some(Err(refusal @ (SubmitError::Message(_) | SubmitError::Invalid { .. })))) => {
                Err(OwnerAlertError::Permanent(refusal.to_string()))
            }
            // The operator can fix all other causes, so retry.
            Ok(Some(Err(refusal))) => Err(transient(&refusal)),
            Err(SubmitError::DoneConcurrently) => Ok(()),
            Err(refusal) => Err(transient(&refusal)),
        }
    }

    async fn alert_mailer(&self) -> Result<SystemMailer, OwnerAlertError> {
        let permanent = |cause: &dyn std::fmt::Display| OwnerAlertError::Permanent(cause.to_string());
        let sandbox = self
            .intake
            .sender_authorization
            .sandbox()
            .ok_or_else(|| permanent(&"`sandbox_sender` in [service] is not set"))?;
        let from = sibling_address(sandbox, LOCAL_PARTS)
            .ok_or_else(|| permanent(&"`sandbox_sender` is not a usable sender address"))?;
        SystemMailer::for_service(&self.services.store, from).await.map_err(|error| transient(&error))
    }
}

fn alert_email(owner: &Account, notice: &OwnerAlert, facts: &ServiceHosts, base_url: Option<&str>) -> SystemEmail {
    let (subject, text) = match &notice.about {
        AlertSubject::Endpoint { webhook, url, what: alert } => {
            let (subject, text) = endpoint_alert(*webhook, url, *alert);
            (subject.to_owned(), text)
        }
        AlertSubject::Claim { claimed, grace_ends_at } => claim_alert(owner, claimed, *grace_ends_at, facts),
        AlertSubject::Application { affiliate, applicant } => application_alert(*affiliate, applicant, base_url),
        AlertSubject::Approval { operation, approval_url, .. } => approval_alert(operation, approval_url),
    };
    SystemEmail::new(owner.email.clone(), subject, text)
}

/// The mail explains to the previous owner how to object.
fn claim_alert(owner: &Account, name: &DomainName, ends_at: Timestamp, facts: &ServiceHosts) -> (String, String) {
    let ownership = facts.ownership_record(owner.id, name);
    let text = format!(
        "Someone who controls the DNS of {name} asked to move it to another account. Unless you object, it moves on \
         {} and you can no longer send from it.\n\nTo object, publish this TXT record at \
         {}.{name}:\n\n{}\n\nIf you have given up the domain, you do not need to do anything.\n",
        timestamp::to_rfc3339(ends_at),
        facts.ownership_label,
        ownership.value
    );
    (format!("Another account has claimed your domain {name}"), text)
}

/// The applicant chose all other fields freely, so the mail names only the address. Without a base URL, the mail names
/// the requests that decide.
fn application_alert(affiliate: PartnerId, applicant: &Address, base_url: Option<&str>) -> (String, String) {
    let decide = match base_url {
        Some(base_url) => {
            format!("Review the application and decide:\n\n{base_url}/dashboard/affiliate/partners/{affiliate}")
        }
        None => {
            format!("To decide: POST /affiliates/{affiliate}/approve, or POST /affiliates/{affiliate}/reject.")
        }
    };
    let applicant = applicant_name(applicant);
    let text = format!(
        "{applicant} applied to your partner program and is waiting for your decision ({affiliate}).\n\n{decide}\n"
    );
    ("Someone applied to your partner program".to_owned(), text)
}

/// The address of an applicant; without its local part if that may be a sentence, as a quoted one can be (RFC 5321
/// 4.1.2).
fn applicant_name(applicant: &Address) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
    match applicant.local_part().bytes().all(is_plain) {
        true => applicant.to_string(),
        false => format!("Someone at {}", applicant.domain()),
    }
}

/// An endpoint with the host of its URL; the tenant chose the rest of the URL freely.
fn endpoint_name(webhook: WebhookId, url: &str) -> String {
    let is_plain = |host: &String| host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte));
    match web_origin::host_of(url).filter(is_plain) {
        Some(host) => format!("The endpoint {webhook} at {host}"),
        None => format!("The endpoint {webhook}"),
    }
}

/// The request's content is not quoted: a stranger may have written it, and the page shows it.
fn approval_alert(operation: &str, approval_url: &str) -> (String, String) {
    let text = format!(
        "A client of your account has asked to carry out `{operation}`, and its policy requires your \
         approval.\n\nReview the request and decide within 24 hours:\n\n{approval_url}\n\nNothing happens unless you \
         approve it.\n"
    );
    ("A request is waiting for your approval".to_owned(), text)
}

fn endpoint_alert(webhook: WebhookId, url: &str, alert: WebhookAlert) -> (&'static str, String) {
    let endpoint = endpoint_name(webhook, url);
    match alert {
        WebhookAlert::Failing => (
            "Webhook deliveries are failing",
            format!(
                "{endpoint} does not accept deliveries: the first one has failed for good.\n\nFailed deliveries \
                 are stored and can be replayed (POST /webhooks/{webhook}/replay). If no delivery succeeds for five days, the endpoint \
                 is disabled.\n"
            ),
        ),
        WebhookAlert::Gone => (
            "A webhook endpoint was disabled",
            format!(
                "{endpoint} answered 410 (Gone), so it was disabled.\n\nTo enable it again: \
                 PATCH /webhooks/{webhook} with {{\"enabled\": true}}.\n"
            ),
        ),
        WebhookAlert::Disabled => (
            "A webhook endpoint was disabled",
            format!(
                "{endpoint} accepted no delivery for five days, so it was disabled.\n\nTo \
                 enable it again: PATCH /webhooks/{webhook} with {{\"enabled\": true}}. Failed deliveries can be \
                 replayed (POST /webhooks/{webhook}/replay).\n"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alert_about_an_application_links_to_the_partner() {
        let affiliate: PartnerId = "aff_01M8A29EWF0002NZ6TEF05MATW".parse().unwrap();
        let applicant: Address = "bob@example.org".parse().unwrap();
        let (_, text) = application_alert(affiliate, &applicant, Some("https://mail.example.com"));
        let url = format!("\n\nhttps://mail.example.com/dashboard/affiliate/partners/{affiliate}\n");
        assert!(text.ends_with(&url) && !text.contains("POST"), "{text}");
        let (_, text) = application_alert(affiliate, &applicant, None);
        assert!(text.contains(&format!("POST /affiliates/{affiliate}/approve")), "{text}");
    }

    #[test]
    fn alerts_have_no_text_that_others_chose() {
        for (address, expected) in [
            ("bob.smith+x@example.org", "bob.smith+x@example.org"),
            ("\"visit http://evil.test now\"@example.org", "Someone at example.org"),
            ("visit=evil!now@example.org", "Someone at example.org"),
        ] {
            assert_eq!(applicant_name(&address.parse().unwrap()), expected);
        }
        let webhook: WebhookId = "whk_01M8A29EWF0002NZ6TEF05MATW".parse().unwrap();
        for (url, expected) in [
            ("https://app.example.com:8443/your-account-is-closed?see=evil.test", " at app.example.com"),
            ("https://evil.test\n\nCall us/", ""),
            ("https://evil.test@app.example.com/", ""),
        ] {
            for alert in [WebhookAlert::Failing, WebhookAlert::Gone, WebhookAlert::Disabled] {
                let (_, text) = endpoint_alert(webhook, url, alert);
                assert!(text.starts_with(&format!("The endpoint {webhook}{expected} ")), "{text}");
                assert!(!text.contains("evil.test"), "{text}");
            }
        }
    }
}
