//! Who writes for the service: letters ([`Letter`]) go out from the domain of `[service] sandbox_sender`, as the account
//! that has that domain, so that they are signed and delivered like any other mail.
//!
//! That account must be one that may write to anybody. The sandbox sender's own address reaches nobody but owners, so
//! letters come from another address beside it.
//!
//! Letters about an account's affairs are that account's emails: [`Postman::of_account`] from a domain of its own, and
//! [`Postman::for_account`] from the service's, in fixed words, to people who asked.

use mail::address::{Address, Mailbox};
use mail::draft::Draft;
use mail::id::AccountId;
use mail::letter::SystemEmail;
use store::access::{AccessError, Tenant};
use store::engine::ReadError;
use thiserror::Error;

use crate::accept::{ExtendBatchCommit, Intake, SubmitReceipt};
use crate::refusal::SubmitError;

/// Why nobody can write for the service.
#[derive(Debug, Error)]
pub enum SystemMailerError {
    /// The domain is not there.
    #[error("nobody has the domain of `sandbox_sender`")]
    NoDomain,
    /// The account that has it may not send.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Writes for the service.
#[derive(Debug)]
pub struct SystemMailer {
    from: Mailbox,
    tenant: Tenant,
    /// What it writes uses up the account's plan.
    is_metered: bool,
}

/// An address beside the sandbox sender's: the first of two that is another.
#[must_use]
pub fn sibling_address(sandbox: &Address, local_parts: [&str; 2]) -> Option<Address> {
    let local = local_parts.into_iter().find(|local| !sandbox.local_part().eq_ignore_ascii_case(local))?;
    Address::new(local, sandbox.domain().clone()).ok()
}

impl SystemMailer {
    /// The one that writes from this address.
    ///
    /// # Errors
    /// [`NoPostman`].
    pub async fn for_service(hall: &Intake, from: Address) -> Result<Self, SystemMailerError> {
        let domain =
            store::domain::find_by_name(hall.store(), from.domain()).await?.ok_or(SystemMailerError::NoDomain)?;
        let tenant = store::access::service_tenant(hall.store(), domain.account).await?;
        Ok(Self { from: from.into(), tenant, is_metered: false })
    }

    /// The one that writes for an account from an address of a domain of its own. The mail is the account's.
    ///
    /// # Errors
    /// [`NoPostman`].
    pub async fn for_account_domain(
        hall: &Intake,
        account: AccountId,
        from: Address,
    ) -> Result<Self, SystemMailerError> {
        let tenant = store::access::service_tenant(hall.store(), account).await?;
        Ok(Self { from: from.into(), tenant, is_metered: true })
    }

    /// The one that writes an account's mail from an address beside the sandbox sender, in the service's fixed words, to
    /// people who asked for it. The mail is the account's: it uses up its plan, and heeds its suppressions.
    ///
    /// # Errors
    /// [`NoPostman`].
    pub async fn for_account_from_service(
        hall: &Intake,
        account: AccountId,
        from: Address,
    ) -> Result<Self, SystemMailerError> {
        let tenant = store::access::system_mail_tenant(hall.store(), account).await?;
        Ok(Self { from: from.into(), tenant, is_metered: true })
    }

    /// The same under a name that people read.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.from.name = Some(name.into());
        self
    }

    fn build_draft(&self, letter: SystemEmail) -> Draft {
        let mut draft = letter.into_draft(self.from.clone());
        draft.options.metered = self.is_metered;
        draft
    }

    /// Sends a letter.
    ///
    /// # Errors
    /// The hall does not take it.
    pub async fn send(self, hall: &Intake, letter: SystemEmail) -> Result<(), SubmitError> {
        hall.submit(&self.tenant, self.build_draft(letter)).await.map(drop)
    }

    /// Sends a letter, and writes something more in the same commit: what came of it, if it was taken.
    ///
    /// # Errors
    /// The hall takes nothing at the moment, or what was to be written is there already.
    pub async fn send_with(
        self,
        hall: &Intake,
        letter: SystemEmail,
        also: &ExtendBatchCommit<'_>,
    ) -> Result<Option<Result<SubmitReceipt, SubmitError>>, SubmitError> {
        Ok(self.send_batch_with(hall, vec![letter], also).await?.into_iter().next())
    }

    /// Sends what is no letter, and writes something more in the same commit.
    ///
    /// # Errors
    /// As [`Postman::send_with`].
    pub async fn send_draft_with(
        self,
        hall: &Intake,
        draft: Draft,
        also: &ExtendBatchCommit<'_>,
    ) -> Result<Option<Result<SubmitReceipt, SubmitError>>, SubmitError> {
        Ok(hall.submit_batch(&self.tenant, vec![draft], false, also).await?.into_iter().next())
    }

    /// The same of several letters, in one commit: each that can be taken is.
    ///
    /// # Errors
    /// As [`Postman::send_with`].
    pub async fn send_batch_with(
        self,
        hall: &Intake,
        letters: Vec<SystemEmail>,
        also: &ExtendBatchCommit<'_>,
    ) -> Result<Vec<Result<SubmitReceipt, SubmitError>>, SubmitError> {
        let drafts = letters.into_iter().map(|letter| self.build_draft(letter)).collect();
        hall.submit_batch(&self.tenant, drafts, false, also).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_do_not_come_from_the_sandbox_sender_itself() {
        let from =
            |sandbox: &str| sibling_address(&sandbox.parse().unwrap(), ["no-reply", "sign-in"]).unwrap().to_string();
        assert_eq!(from("onboarding@example.net"), "no-reply@example.net");
        assert_eq!(from("No-Reply@example.net"), "sign-in@example.net");
    }
}
