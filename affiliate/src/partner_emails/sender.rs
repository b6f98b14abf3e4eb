//! Sender of a partner email: the program itself, or the service on its behalf.
//!
//! ```text
//! `mail_from` on a verified domain, and the account may write to this address ─► the program, with its own texts
//! else, the person requested the mail ([`PartnerEmailKind::is_requested`])    ─► the service, with fixed texts
//! else                                                                        ─► not sent: [`MailBlockReason`]
//! ```
//!
//! Either way it is an email of the account: its plan quota, suppression list and suspension apply.

use mail::account::{AccessLevel, Account};
use mail::address::{Address, DomainName};
use mail::affiliate::partner::PartnerSource;
use mail::affiliate::partner_email::PartnerEmailKind;
use mail::affiliate::program::AffiliateProgram;
use mail::domain::DomainState;
use mail::id::AccountId;
use store::engine::ReadError;
use thiserror::Error;

use crate::service::AffiliateService;

/// Local parts of the service's sender address. The second one is used if the first is the sandbox sender, which
/// reaches only account owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "partners"];

/// Why an email cannot be sent, with what the owner can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MailBlockReason {
    /// The program has no `mail_from` on a verified domain.
    #[error("not mailed: set `mail_from` of the affiliate program to an address on a verified domain of the account")]
    NoSender,
    /// The account may not write to people who did not request the email.
    #[error("not mailed: the account needs production access to write to people who did not ask for the mail")]
    NoProduction,
    #[error("not mailed: the account was deleted")]
    NoAccount,
}

/// Warning to the owner that a partner was not mailed as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MailWarning {
    #[error("the partner was {0}")]
    NotMailed(MailBlockReason),
    /// The service writes instead of the program, with a fixed text.
    #[error("the partner is mailed without the reason: sending it needs `mail_from` and production access")]
    WithoutReason,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SenderChoice {
    /// The program, from its `mail_from`.
    Program(Address),
    /// The service, from its own domain.
    Service(Address),
}

/// Recipient of an email to route, and whether that person requested it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SenderQuery<'a> {
    pub(super) to: Option<&'a Address>,
    /// True if the recipient requested the email.
    pub(super) is_requested: bool,
}

impl AffiliateService {
    /// Chooses the sender of a program's email.
    pub(super) async fn choose_sender(
        &self,
        program: &AffiliateProgram,
        routed: SenderQuery<'_>,
    ) -> Result<Result<SenderChoice, MailBlockReason>, ReadError> {
        let Some(account) = store::account::get(self.store(), program.account).await? else {
            return Ok(Err(MailBlockReason::NoAccount));
        };
        let own_sender = match &program.settings.mail_from {
            Some(from) if self.is_verified_for(account.id, from.domain()).await? => Some(from),
            _ => None,
        };
        if let Some(from) = own_sender
            && may_write(&account, routed.to)
        {
            return Ok(Ok(SenderChoice::Program(from.clone())));
        }
        let service = self.intake.service_address(LOCAL_PARTS).filter(|_| routed.is_requested);
        Ok(match (service, own_sender) {
            (Some(from), _) => Ok(SenderChoice::Service(from)),
            (None, Some(_)) => Err(MailBlockReason::NoProduction),
            (None, None) => Err(MailBlockReason::NoSender),
        })
    }

    /// Returns the warning that sending this email would cause; `None` if it is sent as requested.
    ///
    /// # Errors
    /// The store cannot be read.
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
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn mail_fault(&self, program: &AffiliateProgram) -> Result<Option<MailBlockReason>, ReadError> {
        Ok(self.choose_sender(program, SenderQuery { to: None, is_requested: false }).await?.err())
    }

    /// True if requested emails of the portal can be sent, e.g. sign-in links.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn answers_by_mail(&self, program: &AffiliateProgram) -> Result<bool, ReadError> {
        Ok(self.choose_sender(program, SenderQuery { to: None, is_requested: true }).await?.is_ok())
    }

    /// True if the account has verified this domain.
    pub(crate) async fn is_verified_for(&self, account: AccountId, name: &DomainName) -> Result<bool, ReadError> {
        let found = store::domain::find_by_name(self.store(), name).await?;
        Ok(found.is_some_and(|domain| domain.account == account && domain.state == DomainState::Verified))
    }
}

/// True if an account may write to an address from a verified domain: to any address with production access, else only
/// to the account's own.
fn may_write(account: &Account, to: Option<&Address>) -> bool {
    let is_own = |to: &Address| to.to_string().eq_ignore_ascii_case(&account.email.to_string());
    account.access_level(true) == AccessLevel::Production || to.is_some_and(is_own)
}
