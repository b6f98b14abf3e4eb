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
use mail::letter::Letter;
use store::access::{AccessError, Tenant};
use store::engine::ReadError;
use thiserror::Error;

use crate::accept::{Accepted, AlsoOfMany, Hall};
use crate::refusal::Refusal;

/// Why nobody can write for the service.
#[derive(Debug, Error)]
pub enum NoPostman {
    /// The domain is not there.
    #[error("nobody has the domain of `sandbox_sender`")]
    Nobody,
    /// The account that has it may not send.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Writes for the service.
#[derive(Debug)]
pub struct Postman {
    from: Mailbox,
    tenant: Tenant,
    /// What it writes uses up the account's plan.
    metered: bool,
}

/// An address beside the sandbox sender's: the first of two that is another.
#[must_use]
pub fn beside(sandbox: &Address, local_parts: [&str; 2]) -> Option<Address> {
    let local = local_parts.into_iter().find(|local| !sandbox.local().eq_ignore_ascii_case(local))?;
    Address::new(local, sandbox.domain().clone()).ok()
}

impl Postman {
    /// The one that writes from this address.
    ///
    /// # Errors
    /// [`NoPostman`].
    pub async fn find(hall: &Hall, from: Address) -> Result<Self, NoPostman> {
        let domain = store::domain::by_name(hall.store(), from.domain()).await?.ok_or(NoPostman::Nobody)?;
        let tenant = store::access::by_service(hall.store(), domain.account).await?;
        Ok(Self { from: from.into(), tenant, metered: false })
    }

    /// The one that writes for an account from an address of a domain of its own. The mail is the account's.
    ///
    /// # Errors
    /// [`NoPostman`].
    pub async fn of_account(hall: &Hall, account: AccountId, from: Address) -> Result<Self, NoPostman> {
        let tenant = store::access::by_service(hall.store(), account).await?;
        Ok(Self { from: from.into(), tenant, metered: true })
    }

    /// The one that writes an account's mail from an address beside the sandbox sender, in the service's fixed words, to
    /// people who asked for it. The mail is the account's: it uses up its plan, and heeds its suppressions.
    ///
    /// # Errors
    /// [`NoPostman`].
    pub async fn for_account(hall: &Hall, account: AccountId, from: Address) -> Result<Self, NoPostman> {
        let tenant = store::access::for_service(hall.store(), account).await?;
        Ok(Self { from: from.into(), tenant, metered: true })
    }

    /// The same under a name that people read.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.from.name = Some(name.into());
        self
    }

    fn draft(&self, letter: Letter) -> Draft {
        let mut draft = letter.draft(self.from.clone());
        draft.wishes.metered = self.metered;
        draft
    }

    /// Sends a letter.
    ///
    /// # Errors
    /// The hall does not take it.
    pub async fn send(self, hall: &Hall, letter: Letter) -> Result<(), Refusal> {
        hall.accept(&self.tenant, self.draft(letter)).await.map(drop)
    }

    /// Sends a letter, and writes something more in the same commit: what came of it, if it was taken.
    ///
    /// # Errors
    /// The hall takes nothing at the moment, or what was to be written is there already.
    pub async fn send_with(
        self,
        hall: &Hall,
        letter: Letter,
        also: &AlsoOfMany<'_>,
    ) -> Result<Option<Result<Accepted, Refusal>>, Refusal> {
        Ok(self.send_all_with(hall, vec![letter], also).await?.into_iter().next())
    }

    /// Sends what is no letter, and writes something more in the same commit.
    ///
    /// # Errors
    /// As [`Postman::send_with`].
    pub async fn send_draft_with(
        self,
        hall: &Hall,
        draft: Draft,
        also: &AlsoOfMany<'_>,
    ) -> Result<Option<Result<Accepted, Refusal>>, Refusal> {
        Ok(hall.accept_many(&self.tenant, vec![draft], false, also).await?.into_iter().next())
    }

    /// The same of several letters, in one commit: each that can be taken is.
    ///
    /// # Errors
    /// As [`Postman::send_with`].
    pub async fn send_all_with(
        self,
        hall: &Hall,
        letters: Vec<Letter>,
        also: &AlsoOfMany<'_>,
    ) -> Result<Vec<Result<Accepted, Refusal>>, Refusal> {
        let drafts = letters.into_iter().map(|letter| self.draft(letter)).collect();
        hall.accept_many(&self.tenant, drafts, false, also).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_do_not_come_from_the_sandbox_sender_itself() {
        let from =
            |sandbox: &str| beside(&sandbox.parse().unwrap(), ["no-reply", "sign-in"]).unwrap().to_string();
        assert_eq!(from("onboarding@example.net"), "no-reply@example.net");
        assert_eq!(from("No-Reply@example.net"), "sign-in@example.net");
    }
}
