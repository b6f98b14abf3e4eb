//! System mailer: sends the service's own mail ([`SystemEmail`]) from the domain of `[service] sandbox_sender`. It is
//! sent as the account that has that domain, so that it is signed and delivered like any other mail.
//!
//! That account must be allowed to send to everybody. The sandbox sender's own address reaches owners only, so system
//! mail uses another local part of the domain.
//!
//! Mail about an account's affairs is that account's email. [`SystemMailer::for_account_domain`] sends it from a domain
//! of the account; [`SystemMailer::for_account_from_service`] sends it from the service's domain, in fixed texts, to
//! people who requested it.

use message::address::{Address, Mailbox};
use model::draft::Draft;
use model::id::AccountId;
use model::system_email::SystemEmail;
use store::access::{AccessError, Tenant};
use store::engine::{ReadError, Store};
use thiserror::Error;

use crate::intake::submit_error::SubmitError;
use crate::intake::{ExtendBatchCommit, Intake, SubmitReceipt};

/// Error of creating a mailer.
#[derive(Debug, Error)]
pub enum SystemMailerError {
    /// No account has the domain of `sandbox_sender`.
    #[error("no account has the domain of `sandbox_sender`")]
    NoDomain,
    /// The account with the domain may not send.
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Sends system mail from one address as one account.
#[derive(Debug)]
pub struct SystemMailer {
    from: Mailbox,
    tenant: Tenant,
    /// True if the mail uses the account's plan quota.
    is_metered: bool,
}

impl SystemMailer {
    /// Creates the mailer of the service, with this sender.
    ///
    /// # Errors
    /// `NoDomain` when no account has the sender's domain, `Access` when that account may not send; the store cannot be
    /// read.
    pub async fn for_service(store: &Store, from: Address) -> Result<Self, SystemMailerError> {
        let domain = store::domain::find_by_name(store, from.domain()).await?.ok_or(SystemMailerError::NoDomain)?;
        let tenant = store::access::service_tenant(store, domain.account).await?;
        Ok(Self { from: from.into(), tenant, is_metered: false })
    }

    /// Creates a mailer for an account with a sender in the account's domain. The mail counts as the account's.
    ///
    /// # Errors
    /// `Access` when the account may not send, or the store cannot be read.
    pub async fn for_account_domain(
        store: &Store,
        account: AccountId,
        from: Address,
    ) -> Result<Self, SystemMailerError> {
        let tenant = store::access::service_tenant(store, account).await?;
        Ok(Self { from: from.into(), tenant, is_metered: true })
    }

    /// Creates a mailer for an account with a sender in the service's domain, for fixed texts to people who requested
    /// them. The mail counts as the account's: it uses its plan and respects its suppressions.
    ///
    /// # Errors
    /// `Access` when the account may not send, or the store cannot be read.
    pub async fn for_account_from_service(
        store: &Store,
        account: AccountId,
        from: Address,
    ) -> Result<Self, SystemMailerError> {
        let tenant = store::access::system_mail_tenant(store, account).await?;
        Ok(Self { from: from.into(), tenant, is_metered: true })
    }

    /// Sets the display name of the sender.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.from.name = Some(name.into());
        self
    }

    fn build_draft(&self, email: SystemEmail) -> Draft {
        let mut draft = email.into_draft(self.from.clone());
        draft.options.metered = self.is_metered;
        draft
    }

    /// Sends an email.
    ///
    /// # Errors
    /// The intake rejects the email.
    pub async fn send(self, intake: &Intake, email: SystemEmail) -> Result<(), SubmitError> {
        intake.submit(&self.tenant, self.build_draft(email)).await.map(drop)
    }

    /// Sends an email and lets `extend_commit` add rows to its commit. Returns the email's result.
    ///
    /// # Errors
    /// The intake cannot accept mail now, or a row added by `extend_commit` conflicts.
    pub async fn send_with(
        self,
        intake: &Intake,
        email: SystemEmail,
        extend_commit: &ExtendBatchCommit<'_>,
    ) -> Result<Option<Result<SubmitReceipt, SubmitError>>, SubmitError> {
        Ok(self.send_batch_with(intake, vec![email], extend_commit).await?.into_iter().next())
    }

    /// Sends a draft and lets `extend_commit` add rows to its commit.
    ///
    /// # Errors
    /// Same as [`Self::send_with`].
    pub async fn send_draft_with(
        self,
        intake: &Intake,
        draft: Draft,
        extend_commit: &ExtendBatchCommit<'_>,
    ) -> Result<Option<Result<SubmitReceipt, SubmitError>>, SubmitError> {
        Ok(intake.submit_batch(&self.tenant, vec![draft], false, extend_commit).await?.into_iter().next())
    }

    /// Sends several emails in one commit; rejected ones do not affect the others.
    ///
    /// # Errors
    /// Same as [`Self::send_with`].
    pub async fn send_batch_with(
        self,
        intake: &Intake,
        emails: Vec<SystemEmail>,
        extend_commit: &ExtendBatchCommit<'_>,
    ) -> Result<Vec<Result<SubmitReceipt, SubmitError>>, SubmitError> {
        let drafts = emails.into_iter().map(|email| self.build_draft(email)).collect();
        intake.submit_batch(&self.tenant, drafts, false, extend_commit).await
    }
}
