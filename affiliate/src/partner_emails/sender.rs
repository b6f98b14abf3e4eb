//! Sender of a partner email: the program itself, or the service on its behalf.
//!
//! ```text
//! `mail_from` on a verified domain, and the account may write to this address ─► the program, with its own texts
//! else, the person requested the mail ([`PartnerEmailKind::is_requested`])    ─► the service, with fixed texts
//! else                                                                        ─► not sent: [`MailBlockReason`]
//! ```
//!
//! Either way it is an email of the account: its plan quota, suppression list and suspension apply.

use std::sync::Arc;

use message::address::{Address, DomainName};
use model::account::{AccessLevel, Account};
use model::affiliate::partner::{Partner, PartnerSource};
use model::affiliate::partner_email::{PartnerEmail, PartnerEmailKind};
use model::affiliate::program::AffiliateProgram;
use model::domain::DomainState;
use model::id::{AccountId, EventId, PartnerId};
use queue::intake::sender_authorization::SenderAuthorization;
use store::affiliate::partner_email;
use store::engine::{Batch, ReadError};

use crate::context::Context;
use crate::error::{MailBlockReason, MailWarning};

/// Local parts of the service's sender address. The second one is used if the first is the sandbox sender, which
/// reaches only account owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "partners"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SenderChoice {
    /// The program, from its `mail_from`.
    Program(Address),
    /// The service, from its own domain.
    Service(Address),
}

/// Recipient of an email to route, and whether that person requested it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderQuery<'a> {
    pub(crate) to: Option<&'a Address>,
    /// True if the recipient requested the email.
    pub(crate) is_requested: bool,
}

/// Chooses the sender of partner emails, and queues emails that can be sent.
#[derive(Clone)]
pub struct SenderRouting {
    pub(crate) context: Context,
    pub(crate) senders: Arc<SenderAuthorization>,
}

impl SenderRouting {
    /// Adds an email to the commit of the change it reports, if it can be sent. Returns a warning for the owner
    /// otherwise.
    pub(crate) async fn queue_email_if_mailable(
        &self,
        batch: &mut Batch,
        program: &AffiliateProgram,
        partner: &Partner,
        kind: PartnerEmailKind,
    ) -> Result<Option<MailWarning>, ReadError> {
        let warning = self.mail_warning(program, &partner.email, partner.source, &kind).await?;
        if !matches!(warning, Some(MailWarning::NotMailed(_))) {
            queue_email(&self.context, batch, partner, kind);
        }
        Ok(warning)
    }

    /// Chooses the sender of a program's email.
    pub(crate) async fn choose_sender(
        &self,
        program: &AffiliateProgram,
        routed: SenderQuery<'_>,
    ) -> Result<Result<SenderChoice, MailBlockReason>, ReadError> {
        let Some(account) = store::account::get(&self.context.store, program.account).await? else {
            return Ok(Err(MailBlockReason::NoAccount));
        };
        let own_sender = match &program.settings.mail_from {
            Some(from) if is_verified_for(&self.context, account.id, from.domain()).await? => Some(from),
            _ => None,
        };
        if let Some(from) = own_sender
            && may_write(&account, routed.to)
        {
            return Ok(Ok(SenderChoice::Program(from.clone())));
        }
        let service = self.senders.service_address(LOCAL_PARTS).filter(|_| routed.is_requested);
        Ok(match (service, own_sender) {
            (Some(from), _) => Ok(SenderChoice::Service(from)),
            (None, Some(_)) => Err(MailBlockReason::NoProduction),
            (None, None) => Err(MailBlockReason::NoSender),
        })
    }

    /// Returns the warning that sending this email would cause; `None` if it is sent as requested.
    pub(crate) async fn mail_warning(
        &self,
        program: &AffiliateProgram,
        to: &Address,
        source: PartnerSource,
        kind: &PartnerEmailKind,
    ) -> Result<Option<MailWarning>, ReadError> {
        let routed = SenderQuery { to: Some(to), is_requested: kind.is_requested(source) };
        Ok(match (self.choose_sender(program, routed).await?, kind) {
            (Err(cause), _) => Some(MailWarning::NotMailed(cause)),
            (Ok(SenderChoice::Service(_)), PartnerEmailKind::Rejected { reason: Some(_) }) => {
                Some(MailWarning::WithoutReason)
            }
            (Ok(_), _) => None,
        })
    }

    /// Returns why partners who did not request an email are not mailed; `None` if they are.
    pub async fn mail_fault(&self, program: &AffiliateProgram) -> Result<Option<MailBlockReason>, ReadError> {
        Ok(self.choose_sender(program, SenderQuery { to: None, is_requested: false }).await?.err())
    }

    /// True if requested emails of the portal can be sent, e.g. sign-in links.
    pub async fn answers_by_mail(&self, program: &AffiliateProgram) -> Result<bool, ReadError> {
        Ok(self.choose_sender(program, SenderQuery { to: None, is_requested: true }).await?.is_ok())
    }
}

/// Adds an email to the commit of the change it reports.
pub(crate) fn queue_email(context: &Context, batch: &mut Batch, partner: &Partner, kind: PartnerEmailKind) {
    let now = context.now();
    let queued_email = PartnerEmail {
        id: EventId::new(now, context.random()),
        account: partner.account,
        partner: partner.id,
        tells: kind,
        since: now,
    };
    partner_email::enqueue(batch, &queued_email);
}

/// True if the account has verified this domain.
pub(crate) async fn is_verified_for(
    context: &Context,
    account: AccountId,
    name: &DomainName,
) -> Result<bool, ReadError> {
    let found = store::domain::find_by_name(&context.store, name).await?;
    Ok(found.is_some_and(|domain| domain.account == account && domain.state == DomainState::Verified))
}

/// True if an account may write to an address from a verified domain: to any address with production access, else only
/// to the account's own.
fn may_write(account: &Account, to: Option<&Address>) -> bool {
    let is_own = |to: &Address| to.to_string().eq_ignore_ascii_case(&account.email.to_string());
    account.access_level(true) == AccessLevel::Production || to.is_some_and(is_own)
}

/// Logs that a partner is not mailed because the account may not write to it.
pub(super) fn warn_unmailed(account: AccountId, partner: PartnerId, cause: MailBlockReason) {
    tracing::warn!(%cause, account.id = %account, affiliate.id = %partner, "partner not mailed: the account may not send this email");
}

/// Logs a warning of [`SenderRouting::mail_warning`].
pub(crate) fn log_warning(partner: &Partner, warning: Option<MailWarning>) {
    if let Some(MailWarning::NotMailed(cause)) = warning {
        warn_unmailed(partner.account, partner.id, cause);
    }
}
