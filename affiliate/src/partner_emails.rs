//! Emails to partners: queued in the commit of the change they report, and sent after it.
//!
//! ```text
//! a partner joins, is approved, requests a link, … ─►[ change + queued email ] ─► due emails of the local partitions
//!                       ─► render (text and HTML) ─►[ submit the email, store its link, delete the queue row ]
//! ```
//!
//! Each email is submitted exactly once, also after a crash. The module `sender` chooses the sender: the program's
//! `mail_from`, or the service with fixed texts for requested emails. Either way it is an email of the program's
//! account. Temporary errors are retried for up to a day. An email that is no longer true is dropped
//! ([`PartnerEmailKind::is_current`]). A partner who opted out gets only requested and security emails
//! ([`PartnerEmailKind::is_essential`]).

pub mod email_texts;
pub mod sender;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::affiliate::partner::Partner;
use model::affiliate::partner_email::PartnerEmailKind;
use model::affiliate::portal::{
    CONFIRMATION_TTL, INVITATION_TTL, MAILED_LINK_TTL, PortalLink, PortalLinkPurpose, PortalLinkSecret,
};
use model::affiliate::program::AffiliateProgram;
use model::system_email::SystemEmail;
use queue::intake::submit_error::SubmitError;
use queue::intake::system_mailer::SystemMailer;
use queue::intake::{Intake, SubmitReceipt};
use store::affiliate::partner_email::{self, QueuedPartnerEmail};
use store::affiliate::portal_link::{self, NewPortalLink};
use store::affiliate::{partner, program};
use store::engine::{Batch, CommitError, ReadError};
use tokio::sync::Notify;

use self::email_texts::EmailFacts;
use self::sender::{SenderChoice, SenderQuery, SenderRouting, is_verified_for, warn_unmailed};
use crate::context::Context;
use crate::error::MailBlockReason;
use crate::portal::host::PortalHosts;
use crate::portal::receipts::payout_email_details;

/// Queued emails that are read at once.
const SLICE: usize = 50;
/// Retry interval after a temporary error.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// An email that cannot be sent within this time is dropped.
const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// Poll interval of all local partitions: other nodes enqueue emails too, and partitions move between nodes.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Why an email was not sent.
enum PartnerEmailError {
    /// It is no longer needed; drop it.
    NotNeeded(String),
    /// The account may not send it; drop it and log a warning.
    NotAllowed(MailBlockReason),
    /// A temporary error; retry.
    RetryLater(String),
}

impl From<ReadError> for PartnerEmailError {
    fn from(error: ReadError) -> Self {
        Self::RetryLater(error.to_string())
    }
}

impl From<SubmitError> for PartnerEmailError {
    fn from(refusal: SubmitError) -> Self {
        Self::RetryLater(refusal.to_string())
    }
}

fn not_needed(cause: &str) -> PartnerEmailError {
    PartnerEmailError::NotNeeded(cause.to_owned())
}

/// Sends partner emails.
#[derive(Clone)]
pub struct PartnerEmails {
    pub(crate) context: Context,
    pub(crate) intake: Arc<Intake>,
    /// Notified when an email was queued.
    pub(crate) wakeup: Arc<Notify>,
    pub(crate) senders: SenderRouting,
    pub(crate) hosts: PortalHosts,
}

impl PartnerEmails {
    /// Sends the emails of this node's partitions until dropped.
    pub(crate) fn run(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let next = self.context.now().checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
                for partitions in self.context.leases.owned_ranges() {
                    self.send_due_emails(partitions).await;
                }
                tokio::select! {
                    () = self.wakeup.notified() => {}
                    () = self.context.clock.sleep_until(next) => {}
                }
            }
        })
    }

    /// Sends the due emails of these partitions. Returns the number sent.
    pub async fn send_due_emails(&self, partitions: RangeInclusive<u16>) -> usize {
        let mut mailed = 0;
        loop {
            let due = partner_email::list_due(&self.context.store, partitions.clone(), self.context.now(), SLICE).await;
            let due = match due {
                Ok(due) => due,
                Err(error) => {
                    store::warn_unless_away!(self.context.store, %error, "cannot list queued partner emails");
                    return mailed;
                }
            };
            let is_full = due.len() == SLICE;
            for found in due {
                match self.send_or_defer(&found).await {
                    Ok(is_mailed) => mailed += usize::from(is_mailed),
                    // The store failed: stop, and let the next poll retry.
                    Err(OutboxUnavailable) => return mailed,
                }
            }
            if !is_full {
                return mailed;
            }
        }
    }

    /// Sends an email, or defers or drops it. Returns true if it was sent.
    async fn send_or_defer(&self, found: &QueuedPartnerEmail) -> Result<bool, OutboxUnavailable> {
        let (queued_email, now) = (&found.email, self.context.now());
        let error = match self.send_email(found).await {
            Ok(()) => return Ok(true),
            Err(error) => error,
        };
        let mut batch = Batch::progress();
        let end = queued_email.since.checked_add(TRIED_FOR).unwrap_or(Timestamp::MAX);
        match error {
            PartnerEmailError::RetryLater(cause) if now < end => {
                tracing::debug!(%cause, affiliate.id = %queued_email.partner, "partner email deferred");
                found.defer(&mut batch, now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX));
            }
            PartnerEmailError::NotNeeded(cause) => {
                tracing::info!(%cause, account.id = %queued_email.account, affiliate.id = %queued_email.partner, "partner email dropped: no longer needed");
                found.remove(&mut batch);
            }
            PartnerEmailError::RetryLater(cause) => {
                tracing::warn!(%cause, account.id = %queued_email.account, affiliate.id = %queued_email.partner, "partner email dropped: retries exhausted");
                found.remove(&mut batch);
            }
            PartnerEmailError::NotAllowed(cause) => {
                warn_unmailed(queued_email.account, queued_email.partner, cause);
                found.remove(&mut batch);
            }
        }
        match &self.context.store.commit(batch).await {
            // On a conflict another node has handled the email.
            Ok(()) | Err(CommitError::Conflict { .. }) => Ok(false),
            Err(_) => Err(OutboxUnavailable),
        }
    }

    /// Submits the email, and deletes the queue row in the same commit.
    async fn send_email(&self, found: &QueuedPartnerEmail) -> Result<(), PartnerEmailError> {
        let queued_email = &found.email;
        let store = &self.context.store;
        let program = program::get(store, queued_email.account).await?;
        let program = program.ok_or_else(|| not_needed("the program was deleted"))?;
        let partner = partner::get(store, queued_email.account, queued_email.partner).await?;
        let partner = partner.ok_or_else(|| not_needed("the partner was deleted"))?;
        if !queued_email.tells.is_current(partner.status) {
            return Err(not_needed("the partner's status has changed"));
        }
        if partner.email_opt_out && !queued_email.tells.is_essential() {
            return Err(not_needed("the partner has opted out of email"));
        }
        let routed =
            SenderQuery { to: Some(&partner.email), is_requested: queued_email.tells.is_requested(partner.source) };
        let route = self.senders.choose_sender(&program, routed).await?;
        let route = route.map_err(PartnerEmailError::NotAllowed)?;
        let prepared = self.new_link_for(&partner, &queued_email.tells).await?;
        let link = prepared.as_ref().map(|(secret, _)| secret);
        let facts = self.load_facts(&program, &partner, &queued_email.tells, link).await?;
        let emails = match &route {
            SenderChoice::Program(_) => {
                let email = email_texts::render(&queued_email.tells, false, &facts).into_email(partner.email.clone());
                let email = SystemEmail { has_secret_link: facts.link.is_some(), ..email };
                let former = former_destination(&partner, &queued_email.tells);
                let former = former.map(|to| email_texts::render(&queued_email.tells, true, &facts).into_email(to));
                std::iter::once(email).chain(former).collect()
            }
            SenderChoice::Service(_) => {
                let host = self.verified_host(&program).await?;
                let Some(written) = email_texts::render_service_text(&queued_email.tells, host.as_ref(), &facts) else {
                    return Err(PartnerEmailError::NotAllowed(MailBlockReason::NoSender));
                };
                let email = written.into_email(partner.email.clone());
                vec![SystemEmail { has_secret_link: facts.link.is_some(), ..email }]
            }
        };
        self.submit_email(&program, route, emails, found, prepared.map(|(_, prepared)| prepared)).await
    }

    /// Returns a verified domain that identifies the program: that of `mail_from`, else the portal's.
    async fn verified_host(&self, program: &AffiliateProgram) -> Result<Option<DomainName>, ReadError> {
        if let Some(from) = &program.settings.mail_from
            && is_verified_for(&self.context, program.account, from.domain()).await?
        {
            return Ok(Some(from.domain().clone()));
        }
        self.hosts.portal_host(program).await
    }

    /// Creates the link that an email of this kind carries, if any.
    async fn new_link_for(
        &self,
        partner: &Partner,
        kind: &PartnerEmailKind,
    ) -> Result<Option<(PortalLinkSecret, NewPortalLink)>, PartnerEmailError> {
        let (purpose, valid_for) = match kind {
            PartnerEmailKind::SignIn => (PortalLinkPurpose::Mailed, MAILED_LINK_TTL),
            PartnerEmailKind::Invited => (PortalLinkPurpose::Mailed, INVITATION_TTL),
            PartnerEmailKind::ConfirmPayout { method, destination } => {
                (PortalLinkPurpose::Payout { method: *method, destination: destination.clone() }, CONFIRMATION_TTL)
            }
            _ => return Ok(None),
        };
        let now = self.context.now();
        let expires_at = now.checked_add(valid_for).unwrap_or(Timestamp::MAX);
        let link = PortalLink { account: partner.account, partner: partner.id, purpose, expires_at };
        let secret = PortalLinkSecret::new(self.context.entropy.secret());
        let prepared = portal_link::prepare(&self.context.store, link, &secret, now).await;
        Ok(Some((secret, prepared?)))
    }

    async fn load_facts(
        &self,
        program: &AffiliateProgram,
        partner: &Partner,
        kind: &PartnerEmailKind,
        link: Option<&PortalLinkSecret>,
    ) -> Result<EmailFacts, PartnerEmailError> {
        let origin = self.hosts.portal_origin(program).await?;
        let origin = origin.ok_or_else(|| {
            // The HTTP listener, which has the portal's address, starts after the store.
            PartnerEmailError::RetryLater("the portal's address is not known yet".to_owned())
        })?;
        let fragment = if matches!(kind, PartnerEmailKind::ConfirmPayout { .. }) { "payout" } else { "link" };
        let payout = match kind {
            PartnerEmailKind::PayoutPaid { payout } | PartnerEmailKind::PayoutFailed { payout } => {
                payout_email_details(&self.context, partner, *payout).await?
            }
            _ => None,
        };
        Ok(EmailFacts {
            site: website_host(program),
            website_url: program.settings.website_url.clone(),
            portal: format!("{origin}/portal/sign-in?key={}", program.publishable_key),
            link: link.map(|secret| format!("{origin}/portal/{fragment}/{}", secret.text())),
            payout_destination: partner.payout.as_ref().map(|payout| (payout.method, payout.destination.clone())),
            payout,
        })
    }

    /// Submits the emails, the partner's own first. The same commit deletes the queue row and stores the link.
    async fn submit_email(
        &self,
        program: &AffiliateProgram,
        route: SenderChoice,
        emails: Vec<SystemEmail>,
        found: &QueuedPartnerEmail,
        prepared: Option<NewPortalLink>,
    ) -> Result<(), PartnerEmailError> {
        let extend_commit = |outcomes: &[Result<SubmitReceipt, SubmitError>], batch: &mut Batch| {
            // A suppressed partner gets no email; the queue row is deleted as well.
            if matches!(outcomes.first(), Some(Ok(_) | Err(SubmitError::Suppressed { .. }))) {
                found.remove(batch);
                if let Some(prepared) = &prepared {
                    prepared.write(batch);
                }
            }
        };
        let mailer = self.mailer(program, route).await?;
        let outcomes = match mailer.send_batch_with(&self.intake, emails, &extend_commit).await {
            Ok(outcomes) => outcomes,
            Err(SubmitError::DoneConcurrently) => return Ok(()),
            Err(refusal) => return Err(refusal.into()),
        };
        match outcomes.into_iter().next() {
            None | Some(Ok(_) | Err(SubmitError::Suppressed { .. })) => Ok(()),
            Some(Err(refusal @ (SubmitError::Message(_) | SubmitError::Invalid { .. }))) => {
                Err(PartnerEmailError::NotNeeded(refusal.to_string()))
            }
            // The owner or the operator can fix any other cause, so retry.
            Some(Err(refusal)) => Err(refusal.into()),
        }
    }

    /// Returns the mailer for a route. A program's sender name is its verified domain; the service has no name.
    async fn mailer(&self, program: &AffiliateProgram, route: SenderChoice) -> Result<SystemMailer, PartnerEmailError> {
        let store = &self.context.store;
        let found = match route {
            SenderChoice::Program(from) => {
                let name = from.domain().to_unicode();
                SystemMailer::for_account_domain(store, program.account, from)
                    .await
                    .map(|mailer| mailer.with_name(name))
            }
            SenderChoice::Service(from) => SystemMailer::for_account_from_service(store, program.account, from).await,
        };
        found.map_err(|error| PartnerEmailError::RetryLater(error.to_string()))
    }
}

/// The store cannot commit; the queue row is unchanged.
struct OutboxUnavailable;

/// Returns the former payout destination if it is an email address other than the partner's. It is notified of the
/// change.
fn former_destination(partner: &Partner, kind: &PartnerEmailKind) -> Option<Address> {
    let PartnerEmailKind::PayoutChanged { before: Some((_, destination)) } = kind else { return None };
    let address: Address = destination.parse().ok()?;
    let is_unchanged = address.to_string().eq_ignore_ascii_case(&partner.email.to_string());
    (!is_unchanged).then_some(address)
}

/// Returns the host of the program's website, by which its own pages and emails name it. The host is not verified.
pub fn website_host(program: &AffiliateProgram) -> String {
    let url = url::Url::parse(&program.settings.website_url).ok();
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or(&program.settings.website_url);
    host.strip_prefix("www.").unwrap_or(host).to_owned()
}
