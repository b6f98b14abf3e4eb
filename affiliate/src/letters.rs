//! Letters to partners: decided in the commit that makes true what they tell, and written after it.
//!
//! ```text
//! a partner joins, is approved, asks for a link, … ─►[ … + letter ] ─► find what is due in our partitions
//!                       ─► words (text and HTML) ─►[ the email (+ the link that it carries) - the letter ]
//! ```
//!
//! So each is mailed once, whatever crashes. Who writes, [`route`] says: the program from its `mail_from`, or the service in
//! fixed words to who asked; as an email of the program's account either way. What passes by itself is waited for, up to a
//! day. What is no more so is not written ([`Tells::holds`]), and who wants no mail gets what it asked for and what concerns
//! its money ([`Tells::is_essential`]).

mod route;
mod words;

use std::ops::RangeInclusive;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use mail::address::{Address, DomainName};
use mail::affiliate::partner::Partner;
use mail::affiliate::partner_letter::{PartnerEmail, PartnerEmailKind};
use mail::affiliate::portal::{
    CONFIRMATION_TTL, INVITATION_TTL, MAILED_LINK_TTL, PortalLink, PortalLinkPurpose, PortalLinkSecret,
};
use mail::affiliate::program::AffiliateProgram;
use mail::id::{AccountId, EventId, PartnerId};
use mail::letter::SystemEmail;
use queue::accept::SubmitReceipt;
use queue::postman::SystemMailer;
use queue::refusal::SubmitError as Refused;
use store::affiliate::partner_letter::{self, QueuedPartnerEmail};
use store::affiliate::portal_link::{self, NewPortalLink};
use store::affiliate::{partner, program};
use store::engine::{Batch, CommitError, ReadError};

use self::route::{SenderChoice, SenderQuery};
use self::words::EmailFacts;
use crate::office::AffiliateService;

pub use self::route::{MailBlockReason, MailWarning};
pub(crate) use self::words::PayoutEmailDetails;
pub use self::words::{destination_line, method_name};

/// Letters that are written one after the other before the next look.
const SLICE: usize = 50;
/// How soon is tried again what cannot be mailed at the moment …
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// … and for how long.
const TRIED_FOR: Duration = Duration::from_secs(24 * 3600);
/// How often all partitions are looked at: other nodes put letters into them, and go.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Why a letter is not mailed.
enum PartnerEmailError {
    /// It need not be.
    NotNeeded(String),
    /// It may not be.
    NotAllowed(MailBlockReason),
    /// Not at the moment.
    RetryLater(String),
}

fn retry_later(error: &dyn std::fmt::Display) -> PartnerEmailError {
    PartnerEmailError::RetryLater(error.to_string())
}

fn not_needed(cause: &str) -> PartnerEmailError {
    PartnerEmailError::NotNeeded(cause.to_owned())
}

impl AffiliateService {
    /// Puts what a partner is to be told into the commit that makes it true, where it can be mailed. Says what the owner is
    /// to know of that.
    pub(crate) async fn queue_email_if_mailable(
        &self,
        batch: &mut Batch,
        (program, partner): (&AffiliateProgram, &Partner),
        tells: PartnerEmailKind,
    ) -> Result<Option<MailWarning>, ReadError> {
        let warning = self.mail_warning(program, (&partner.email, partner.source), &tells).await?;
        if !matches!(warning, Some(MailWarning::NotMailed(_))) {
            self.queue_email(batch, partner, tells);
        }
        Ok(warning)
    }

    /// Puts a letter into the commit that makes true what it tells.
    pub(crate) fn queue_email(&self, batch: &mut Batch, partner: &Partner, tells: PartnerEmailKind) {
        let now = self.now();
        let letter = PartnerEmail {
            id: EventId::new(now, self.random()),
            account: partner.account,
            partner: partner.id,
            tells,
            since: now,
        };
        partner_letter::enqueue(batch, &letter);
    }

    /// Writes letters as long as it is polled: those of this node's partitions.
    pub fn run_partner_emails(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let next = self.now().checked_add(POLL_INTERVAL).unwrap_or(Timestamp::MAX);
                for partitions in self.hall.partition_ranges() {
                    self.send_due_emails(partitions).await;
                }
                self.hall.wait_for_partner_email(next).await;
            }
        })
    }

    /// Writes what of these partitions is due. Says how many letters are mailed now.
    pub async fn send_due_emails(&self, partitions: RangeInclusive<u16>) -> usize {
        let mut mailed = 0;
        loop {
            let due = partner_letter::list_due(self.store(), partitions.clone(), self.now(), SLICE).await;
            let due = match due {
                Ok(due) => due,
                Err(error) => {
                    store::warn_unless_away!(self.store(), %error, "letters to partners cannot be read at the moment");
                    return mailed;
                }
            };
            let is_full = due.len() == SLICE;
            for found in due {
                match self.send_or_defer(&found).await {
                    Ok(is_mailed) => mailed += usize::from(is_mailed),
                    // A store in need is not asked for the same again at once.
                    Err(OutboxUnavailable) => return mailed,
                }
            }
            if !is_full {
                return mailed;
            }
        }
    }

    /// Mails one, or puts it off. Says whether it is mailed.
    async fn send_or_defer(&self, found: &QueuedPartnerEmail) -> Result<bool, OutboxUnavailable> {
        let (letter, now) = (&found.letter, self.now());
        let why = match self.send_email(found).await {
            Ok(()) => return Ok(true),
            Err(why) => why,
        };
        let mut batch = Batch::progress();
        let end = letter.since.checked_add(TRIED_FOR).unwrap_or(Timestamp::MAX);
        match why {
            PartnerEmailError::RetryLater(cause) if now < end => {
                tracing::debug!(%cause, affiliate.id = %letter.partner, "a partner is mailed later");
                found.defer(&mut batch, now.checked_add(RETRY_AFTER).unwrap_or(Timestamp::MAX));
            }
            PartnerEmailError::NotNeeded(cause) => {
                tracing::info!(%cause, account.id = %letter.account, affiliate.id = %letter.partner, "a partner is not mailed");
                found.remove(&mut batch);
            }
            PartnerEmailError::RetryLater(cause) => {
                tracing::warn!(%cause, account.id = %letter.account, affiliate.id = %letter.partner, "a partner could not be mailed");
                found.remove(&mut batch);
            }
            PartnerEmailError::NotAllowed(cause) => {
                warn_unmailed(letter.account, letter.partner, cause);
                found.remove(&mut batch);
            }
        }
        match self.store().commit(batch).await {
            // Somebody else did it.
            Ok(()) | Err(CommitError::Conflict { .. }) => Ok(false),
            Err(_) => Err(OutboxUnavailable),
        }
    }

    /// Accepts the email, and takes the letter away in the same commit.
    async fn send_email(&self, found: &QueuedPartnerEmail) -> Result<(), PartnerEmailError> {
        let letter = &found.letter;
        let store = self.store();
        let program = program::get(store, letter.account).await.map_err(|error| retry_later(&error))?;
        let program = program.ok_or_else(|| not_needed("the program is gone"))?;
        let partner = partner::get(store, letter.account, letter.partner).await.map_err(|error| retry_later(&error))?;
        let partner = partner.ok_or_else(|| not_needed("the partner is gone"))?;
        if !letter.tells.is_current(partner.status) {
            return Err(not_needed("it is so no more"));
        }
        if partner.email_opt_out && !letter.tells.is_essential() {
            return Err(not_needed("the partner wants no mail"));
        }
        let routed = SenderQuery { to: Some(&partner.email), is_asked_for: letter.tells.is_requested(partner.source) };
        let route = self.choose_sender(&program, routed).await.map_err(|error| retry_later(&error))?;
        let route = route.map_err(PartnerEmailError::NotAllowed)?;
        let minting = self.new_link_for(&partner, &letter.tells).await?;
        let link = minting.as_ref().map(|(secret, _)| secret);
        let facts = self.load_facts(&program, &partner, &letter.tells, link).await?;
        let sheets = match &route {
            SenderChoice::Program(_) => {
                let own = words::render(&letter.tells, false, &facts).into_email(partner.email.clone());
                let former = former_destination(&partner, &letter.tells);
                let former = former.map(|to| words::render(&letter.tells, true, &facts).into_email(to));
                std::iter::once(own).chain(former).collect()
            }
            SenderChoice::Service(_) => {
                let host = self.verified_host(&program).await.map_err(|error| retry_later(&error))?;
                let Some(written) = words::render_service_text(&letter.tells, host.as_ref(), &facts) else {
                    return Err(PartnerEmailError::NotAllowed(MailBlockReason::NoSender));
                };
                vec![written.into_email(partner.email.clone())]
            }
        };
        self.submit_email((&program, route), sheets, (found, minting.map(|(_, minting)| minting))).await
    }

    /// A host that the account has verified, by which people may know the program: that of its sender, or of its portal.
    async fn verified_host(&self, program: &AffiliateProgram) -> Result<Option<DomainName>, ReadError> {
        if let Some(from) = &program.settings.mail_from
            && self.is_verified_for(program.account, from.domain()).await?
        {
            return Ok(Some(from.domain().clone()));
        }
        self.portal_host(program).await
    }

    /// The link that a letter carries, if it is one of those.
    async fn new_link_for(
        &self,
        partner: &Partner,
        tells: &PartnerEmailKind,
    ) -> Result<Option<(PortalLinkSecret, NewPortalLink)>, PartnerEmailError> {
        let (purpose, works_for) = match tells {
            PartnerEmailKind::SignIn => (PortalLinkPurpose::Mailed, MAILED_LINK_TTL),
            PartnerEmailKind::Invited => (PortalLinkPurpose::Mailed, INVITATION_TTL),
            PartnerEmailKind::ConfirmPayout { method, destination } => {
                (PortalLinkPurpose::Payout { method: *method, destination: destination.clone() }, CONFIRMATION_TTL)
            }
            _ => return Ok(None),
        };
        let now = self.now();
        let expires_at = now.checked_add(works_for).map_err(|error| retry_later(&error))?;
        let link = PortalLink { account: partner.account, partner: partner.id, purpose, expires_at };
        let secret = PortalLinkSecret::new(self.hall.entropy().secret());
        let minting = portal_link::prepare(self.store(), link, &secret, now).await;
        Ok(Some((secret, minting.map_err(|error| retry_later(&error))?)))
    }

    async fn load_facts(
        &self,
        program: &AffiliateProgram,
        partner: &Partner,
        tells: &PartnerEmailKind,
        link: Option<&PortalLinkSecret>,
    ) -> Result<EmailFacts, PartnerEmailError> {
        let origin = self.portal_origin(program).await.map_err(|error| retry_later(&error))?;
        let origin = origin.ok_or_else(|| {
            // The door opens after the store does.
            PartnerEmailError::RetryLater("it is not known yet where the portal is".to_owned())
        })?;
        let place = if matches!(tells, PartnerEmailKind::ConfirmPayout { .. }) { "payout" } else { "link" };
        let payout = match tells {
            PartnerEmailKind::PayoutPaid { payout } | PartnerEmailKind::PayoutFailed { payout } => {
                self.payout_email_details(partner, *payout).await.map_err(|error| retry_later(&error))?
            }
            _ => None,
        };
        Ok(EmailFacts {
            site: website_host(program),
            website_url: program.settings.website_url.clone(),
            portal: format!("{origin}/portal/sign-in?key={}", program.publishable_key),
            link: link.map(|secret| format!("{origin}/portal/{place}/{}", secret.text())),
            goes_to: partner.payout.as_ref().map(|payout| (payout.method, payout.destination.clone())),
            payout,
        })
    }

    /// Sends the sheets of a letter, the first of which is the partner's own; and takes the letter away and makes its
    /// link, in the same commit.
    async fn submit_email(
        &self,
        (program, route): (&AffiliateProgram, SenderChoice),
        sheets: Vec<SystemEmail>,
        (found, minting): (&QueuedPartnerEmail, Option<NewPortalLink>),
    ) -> Result<(), PartnerEmailError> {
        let also = |outcomes: &[Result<SubmitReceipt, Refused>], batch: &mut Batch| {
            // A partner who is suppressed is not written to: then that is over, too.
            if matches!(outcomes.first(), Some(Ok(_) | Err(Refused::Suppressed { .. }))) {
                found.remove(batch);
                if let Some(minting) = &minting {
                    minting.write(batch);
                }
            }
        };
        let postman = self.mailer(program, route).await?;
        let outcomes = match postman.send_batch_with(&self.hall, sheets, &also).await {
            Ok(outcomes) => outcomes,
            Err(Refused::DoneConcurrently) => return Ok(()),
            Err(refusal) => return Err(retry_later(&refusal)),
        };
        match outcomes.into_iter().next() {
            None | Some(Ok(_) | Err(Refused::Suppressed { .. })) => Ok(()),
            Some(Err(refusal @ (Refused::Message(_) | Refused::Invalid { .. }))) => {
                Err(PartnerEmailError::NotNeeded(refusal.to_string()))
            }
            // Whatever else is in the way, the owner or the operator can clear away.
            Some(Err(refusal)) => Err(retry_later(&refusal)),
        }
    }

    /// Who writes for a program. Its name is the sender's domain, which the account has verified; the service has none.
    async fn mailer(&self, program: &AffiliateProgram, route: SenderChoice) -> Result<SystemMailer, PartnerEmailError> {
        let hall = &self.hall;
        let found = match route {
            SenderChoice::Program(from) => {
                let name = from.domain().to_unicode();
                SystemMailer::for_account_domain(hall, program.account, from)
                    .await
                    .map(|postman| postman.with_name(name))
            }
            SenderChoice::Service(from) => SystemMailer::for_account_from_service(hall, program.account, from).await,
        };
        found.map_err(|error| retry_later(&error))
    }
}

/// Says that a partner is not mailed because its account may not write to it.
fn warn_unmailed(account: AccountId, partner: PartnerId, cause: MailBlockReason) {
    tracing::warn!(%cause, account.id = %account, affiliate.id = %partner, "a partner is not mailed");
}

/// Says so of a partner who was just added or moved, if it is so.
pub(crate) fn log_warning(partner: &Partner, warning: Option<MailWarning>) {
    if let Some(MailWarning::NotMailed(cause)) = warning {
        warn_unmailed(partner.account, partner.id, cause);
    }
}

/// A letter lies where it lay: the store takes nothing at the moment.
struct OutboxUnavailable;

/// Where money went so far: it is told as well, where mail reaches it.
fn former_destination(partner: &Partner, tells: &PartnerEmailKind) -> Option<Address> {
    let PartnerEmailKind::PayoutChanged { before: Some((_, destination)) } = tells else { return None };
    let address: Address = destination.parse().ok()?;
    let is_same = address.to_string().eq_ignore_ascii_case(&partner.email.to_string());
    (!is_same).then_some(address)
}

/// What people know the program by on its own pages and in its own mail: the host of its website. Nobody has verified it.
#[must_use]
pub fn website_host(program: &AffiliateProgram) -> String {
    let url = url::Url::parse(&program.settings.website_url).ok();
    let host = url.as_ref().and_then(url::Url::host_str).unwrap_or(&program.settings.website_url);
    host.strip_prefix("www.").unwrap_or(host).to_owned()
}
