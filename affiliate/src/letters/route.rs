//! Who writes a letter to a partner: the program itself, or the service in its stead.
//!
//! ```text
//! `mail_from` on a verified domain, and the account may write to this address ─► the program, in its own words
//! else, the person asked for the mail ([`Tells::is_asked_for`])                ─► the service, in fixed words
//! else                                                                        ─► nobody: [`Unmailable`] says why
//! ```
//!
//! Either way the letter is an email of the account: its plan's caps, its suppressions and its suspension hold.

use mail::account::{AccessLevel, Account};
use mail::address::{Address, DomainName};
use mail::affiliate::partner::PartnerSource;
use mail::affiliate::partner_letter::PartnerEmailKind;
use mail::affiliate::program::AffiliateProgram;
use mail::domain::DomainState;
use mail::id::AccountId;
use store::engine::ReadError;
use thiserror::Error;

use crate::office::AffiliateService;

/// Who writes for programs that cannot write themselves; or the other one, when the first is the sandbox sender itself,
/// which reaches nobody but owners.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "partners"];

/// Why a letter goes to nobody, and what the owner can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MailBlockReason {
    /// The program has no sender of its own.
    #[error("not mailed: set `mail_from` of the affiliate program to an address on a verified domain of the account")]
    NoSender,
    /// The account may not write to strangers.
    #[error("not mailed: the account needs production access to write to people who did not ask for the mail")]
    NoProduction,
    /// The account is gone.
    #[error("not mailed: the account is gone")]
    NoAccount,
}

/// What the owner is told when a partner is not written to as the owner asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MailWarning {
    /// It is not written to.
    #[error("the partner was {0}")]
    NotMailed(MailBlockReason),
    /// The service writes in the program's stead, in fixed words.
    #[error("the partner is mailed without the reason, which goes out from `mail_from` with production access alone")]
    WithoutReason,
}

/// Who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SenderChoice {
    /// The program, from its `mail_from`.
    Program(Address),
    /// The service, from its own domain.
    Service(Address),
}

/// A letter that is to be routed: to whom, and whether that person asked for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SenderQuery<'a> {
    /// To whom.
    pub(super) to: Option<&'a Address>,
    /// The person asked for it.
    pub(super) is_asked_for: bool,
}

impl AffiliateService {
    /// Who writes a letter of a program.
    pub(super) async fn choose_sender(
        &self,
        program: &AffiliateProgram,
        routed: SenderQuery<'_>,
    ) -> Result<Result<SenderChoice, MailBlockReason>, ReadError> {
        let Some(account) = store::account::get(self.store(), program.account).await? else {
            return Ok(Err(MailBlockReason::NoAccount));
        };
        let own = match &program.settings.mail_from {
            Some(from) if self.is_verified_for(account.id, from.domain()).await? => Some(from),
            _ => None,
        };
        if let Some(from) = own
            && may_write(&account, routed.to)
        {
            return Ok(Ok(SenderChoice::Program(from.clone())));
        }
        let service = self.hall.service_address(LOCAL_PARTS).filter(|_| routed.is_asked_for);
        Ok(match (service, own) {
            (Some(from), _) => Ok(SenderChoice::Service(from)),
            (None, Some(_)) => Err(MailBlockReason::NoProduction),
            (None, None) => Err(MailBlockReason::NoSender),
        })
    }

    /// What the owner is to know of how a partner is told something; nothing when it is told as the owner asked.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) async fn mail_warning(
        &self,
        program: &AffiliateProgram,
        (to, source): (&Address, PartnerSource),
        tells: &PartnerEmailKind,
    ) -> Result<Option<MailWarning>, ReadError> {
        let routed = SenderQuery { to: Some(to), is_asked_for: tells.is_requested(source) };
        Ok(match (self.choose_sender(program, routed).await?, tells) {
            (Err(cause), _) => Some(MailWarning::NotMailed(cause)),
            (Ok(SenderChoice::Service(_)), PartnerEmailKind::Rejected { reason: Some(_) }) => {
                Some(MailWarning::WithoutReason)
            }
            (Ok(_), _) => None,
        })
    }

    /// Why partners who did not ask for it are not mailed what a program tells them; none when they are.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn mail_fault(&self, program: &AffiliateProgram) -> Result<Option<MailBlockReason>, ReadError> {
        Ok(self.choose_sender(program, SenderQuery { to: None, is_asked_for: false }).await?.err())
    }

    /// Whether anybody can be mailed what they ask a program's portal for.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn answers_by_mail(&self, program: &AffiliateProgram) -> Result<bool, ReadError> {
        Ok(self.choose_sender(program, SenderQuery { to: None, is_asked_for: true }).await?.is_ok())
    }

    /// Whether an account has verified a domain.
    pub(crate) async fn is_verified_for(&self, account: AccountId, name: &DomainName) -> Result<bool, ReadError> {
        let found = store::domain::find_by_name(self.store(), name).await?;
        Ok(found.is_some_and(|domain| domain.account == account && domain.state == DomainState::Verified))
    }
}

/// Whether an account may write to an address from a verified domain: to anybody with production access, else to its own
/// address alone.
fn may_write(account: &Account, to: Option<&Address>) -> bool {
    let is_own = |to: &Address| to.to_string().eq_ignore_ascii_case(&account.email.to_string());
    account.access_level(true) == AccessLevel::Production || to.is_some_and(is_own)
}
