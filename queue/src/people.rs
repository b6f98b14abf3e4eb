//! People: the users of an account and their sessions, from the first owner on.
//!
//! An account that was made before it had users gets its owner (the account's address) when somebody
//! first signs in. There is always an owner: who would remove the last one conflicts with who removes
//! the last but one.
//!
//! An address signs in to one account, but is not taken by being invited: that would let anybody keep it
//! from others, and find out whether it signs in elsewhere. It is taken when the invitation is accepted by
//! whoever reads its mail, and only they are told when it cannot be.

use std::time::Duration;

use jiff::Timestamp;
use mail::account::Account;
use mail::address::Address;
use mail::id::{AccountId, SessionId, UserId};
use mail::user::{
    PasswordHash, SessionStart, SessionToken, SignInLink, SignInLinkToken, SignInMethod, User, UserRole, UserSession,
};
use store::engine::{Batch, CommitError, ReadError, Store};
use store::user::USERS_MAX;
use thiserror::Error;

use crate::accept::Intake;
use crate::clock::Clock;
use crate::entropy::Entropy;

/// Why something about users was not done.
#[derive(Debug, Error)]
pub enum UserError {
    /// The address signs in to an account already, this one or another.
    #[error("{0} signs in to an account already")]
    Taken(Address),
    /// No such user.
    #[error("no such user")]
    Unknown,
    /// An account keeps an owner.
    #[error("the account's last owner stays: make somebody else an owner first")]
    LastOwner,
    /// The account has as many users as it may.
    #[error("an account has at most {USERS_MAX} users")]
    TooMany,
    /// It was changed by somebody else at the same moment.
    #[error("it was changed by somebody else meanwhile; try again")]
    Conflict,
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(CommitError),
}

impl From<CommitError> for UserError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Conflict { .. } => Self::Conflict,
            error => Self::Commit(error),
        }
    }
}

/// Knows the users.
#[derive(Clone)]
pub struct UserService {
    /// Where everything lies.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Chance.
    pub entropy: Entropy,
}

impl UserService {
    /// Those behind the hall.
    #[must_use]
    pub fn from_intake(hall: &Intake) -> Self {
        let (store, clock) = (hall.store().clone(), hall.clock().clone());
        Self { store, clock, entropy: hall.entropy().clone() }
    }

    /// A user of an account that is to be.
    #[must_use]
    pub fn new_user(&self, account: AccountId, email: Address, role: UserRole) -> User {
        let now = self.clock.now();
        let id = UserId::new(now, self.entropy.unique_bits());
        User { id, account, email, role, password: None, invited: false, link_series: 0, created_at: now }
    }

    /// The user of an address: an account's own address is that of its owner.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn by_email(&self, email: &Address) -> Result<Option<User>, UserError> {
        let text = email.to_string();
        if let Some(user) = store::user::find_by_email(&self.store, &text).await? {
            return Ok(Some(user));
        }
        let Some(account) = store::account::find(&self.store, &text).await? else { return Ok(None) };
        self.create_first_owner(&account).await
    }

    /// An account's owner of the longest standing.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn owner(&self, account: &Account) -> Result<User, UserError> {
        if let Some(first) = self.create_first_owner(account).await? {
            return Ok(first);
        }
        let users = store::user::list(&self.store, account.id).await?;
        users.into_iter().find(|user| user.role == UserRole::Owner && !user.invited).ok_or(UserError::Unknown)
    }

    /// Makes the owner of an account that has no users yet.
    async fn create_first_owner(&self, account: &Account) -> Result<Option<User>, UserError> {
        if !store::user::list(&self.store, account.id).await?.is_empty() {
            return Ok(None);
        }
        let user = self.new_user(account.id, account.email.clone(), UserRole::Owner);
        let mut batch = Batch::progress();
        store::user::create(&mut batch, &user);
        match self.store.commit(batch).await {
            Ok(()) => Ok(Some(user)),
            // Made at the same moment by somebody else.
            Err(CommitError::Conflict { .. }) => {
                Ok(store::user::find_by_email(&self.store, &account.email.to_string())
                    .await?
                    .filter(|user| user.account == account.id))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Signs a user in: the token is for their browser alone.
    ///
    /// # Errors
    /// [`PeopleError`]; [`PeopleError::Changed`] when the user is no more as given.
    pub async fn sign_in(&self, user: &User) -> Result<(SessionToken, UserSession), UserError> {
        let start = SessionStart::new(SignInMethod::Password, None, None);
        self.begin_session(user, start, Batch::progress()).await
    }

    /// Begins a session, and commits what is in the batch with it.
    ///
    /// # Errors
    /// As [`People::sign_in`].
    pub async fn begin_session(
        &self,
        user: &User,
        start: SessionStart,
        mut batch: Batch,
    ) -> Result<(SessionToken, UserSession), UserError> {
        let now = self.clock.now();
        let id = SessionId::new(now, self.entropy.unique_bits());
        let token = SessionToken::new((user.account, user.id), id, self.entropy.secret());
        let session = UserSession::new(&token, now, start);
        // A password that was changed meanwhile was not the right one.
        store::user::check_unchanged(&mut batch, user);
        store::session::evict_oldest(&self.store, &mut batch, (user.account, user.id), now).await?;
        store::session::create(&mut batch, &session);
        self.store.commit(batch).await?;
        Ok((token, session))
    }

    /// Whether an address is a user's of this account, or was invited to it.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn is_user(&self, account: &Account, email: &Address) -> Result<bool, UserError> {
        self.owner(account).await?;
        Ok(find_by_email(&store::user::list(&self.store, account.id).await?, email).is_some())
    }

    /// Invites somebody to an account, or invites again who has not accepted yet. What becomes of it does
    /// not depend on other accounts.
    ///
    /// # Errors
    /// [`PeopleError`]; [`PeopleError::Taken`] by a user of this account.
    pub async fn invite(&self, account: &Account, email: Address, role: UserRole) -> Result<User, UserError> {
        self.owner(account).await?;
        let users = store::user::list(&self.store, account.id).await?;
        if let Some(there) = find_by_email(&users, &email) {
            if !there.invited {
                return Err(UserError::Taken(email));
            }
            let after = User { role, ..there.clone() };
            let mut batch = Batch::progress();
            store::user::update(&mut batch, there, &after);
            self.store.commit(batch).await?;
            return Ok(after);
        }
        if users.len() >= USERS_MAX {
            return Err(UserError::TooMany);
        }
        let user = User { invited: true, ..self.new_user(account.id, email, role) };
        let mut batch = Batch::progress();
        store::user::invite(&mut batch, &user);
        self.store.commit(batch).await?;
        Ok(user)
    }

    /// Makes one who was invited a user: they have shown that the address is theirs.
    ///
    /// # Errors
    /// [`PeopleError`]; [`PeopleError::Taken`] when the address signs in to another account.
    pub async fn accept_invitation(&self, invited: &User) -> Result<User, UserError> {
        let (email, after) = (invited.email.to_string(), User { invited: false, ..invited.clone() });
        // Another account's owner may not have signed in yet.
        let owned = store::account::find(&self.store, &email).await?;
        if owned.is_some_and(|owned| owned.id != invited.account) {
            return Err(UserError::Taken(after.email));
        }
        let mut batch = Batch::progress();
        store::user::accept(&mut batch, invited, &after);
        match self.store.commit(batch).await {
            Err(CommitError::Conflict { .. }) if store::user::find_by_email(&self.store, &email).await?.is_some() => {
                Err(UserError::Taken(after.email))
            }
            other => Ok(other.map(|()| after)?),
        }
    }

    /// Removes a user; their sessions end.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn remove_user(&self, account: AccountId, id: UserId) -> Result<(), UserError> {
        let user = store::user::get(&self.store, account, id).await?.ok_or(UserError::Unknown)?;
        let mut batch = Batch::progress();
        self.require_another_owner(&mut batch, &user).await?;
        store::user::delete(&mut batch, &user);
        self.end_sessions(&mut batch, &user, None).await?;
        Ok(self.store.commit(batch).await?)
    }

    /// Gives a user another role.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn change_role(&self, account: AccountId, id: UserId, role: UserRole) -> Result<User, UserError> {
        let before = store::user::get(&self.store, account, id).await?.ok_or(UserError::Unknown)?;
        let after = User { role, ..before.clone() };
        let mut batch = Batch::progress();
        if role != UserRole::Owner {
            self.require_another_owner(&mut batch, &before).await?;
        }
        store::user::update(&mut batch, &before, &after);
        self.store.commit(batch).await?;
        Ok(after)
    }

    /// Gives a user a password; their other sessions end, and sign-in links made before are void. Says how many
    /// sessions.
    ///
    /// # Errors
    /// [`PeopleError`]; [`PeopleError::Changed`] when the user is no more as given.
    pub async fn set_password(
        &self,
        before: &User,
        password: PasswordHash,
        stays: SessionId,
    ) -> Result<usize, UserError> {
        let after = before.with_password(Some(password));
        let mut batch = Batch::progress();
        store::user::update(&mut batch, before, &after);
        let ended = self.end_sessions(&mut batch, before, Some(stays)).await?;
        self.store.commit(batch).await?;
        Ok(ended)
    }

    /// Takes a user's password away, ends all their sessions and links, and makes a link that signs them in once: for an address that
    /// was stolen, or a password that was forgotten where no mail reaches its user. Says how many sessions ended.
    ///
    /// # Errors
    /// [`PeopleError`]; [`PeopleError::Unknown`] for an address that signs in to no account.
    pub async fn reset_password(
        &self,
        email: &Address,
        link_holds: Duration,
    ) -> Result<(SignInLinkToken, usize), UserError> {
        let before = self.by_email(email).await?.ok_or(UserError::Unknown)?;
        let after = before.with_password(None);
        let expires_at = self.clock.now().checked_add(link_holds).unwrap_or(Timestamp::MAX);
        let token = SignInLinkToken::new(expires_at, self.entropy.secret());
        let link = SignInLink::new(&after, &token);
        let mut batch = Batch::progress();
        store::user::update(&mut batch, &before, &after);
        store::sign_in_link::create(&mut batch, &token, &link);
        let ended = self.end_sessions(&mut batch, &before, None).await?;
        self.store.commit(batch).await?;
        Ok((token, ended))
    }

    /// Ends all sessions of a user but this one. Says how many.
    ///
    /// # Errors
    /// [`PeopleError`].
    pub async fn end_other_sessions(&self, user: &User, stays: SessionId) -> Result<usize, UserError> {
        let mut batch = Batch::progress();
        let ended = self.end_sessions(&mut batch, user, Some(stays)).await?;
        self.store.commit(batch).await?;
        Ok(ended)
    }

    async fn end_sessions(&self, batch: &mut Batch, user: &User, stays: Option<SessionId>) -> Result<usize, ReadError> {
        let mut sessions = store::session::list_by_user(&self.store, user.account, user.id).await?;
        sessions.retain(|session| Some(session.id) != stays);
        sessions.iter().for_each(|session| store::session::delete(batch, session));
        let now = self.clock.now();
        Ok(sessions.iter().filter(|session| session.is_live(now)).count())
    }

    /// When an owner goes, the commit holds only while another one stays.
    async fn require_another_owner(&self, batch: &mut Batch, goes: &User) -> Result<(), UserError> {
        if goes.role != UserRole::Owner || goes.invited {
            return Ok(());
        }
        let users = store::user::list(&self.store, goes.account).await?;
        let other = users.iter().find(|user| user.role == UserRole::Owner && !user.invited && user.id != goes.id);
        store::user::check_unchanged(batch, other.ok_or(UserError::LastOwner)?);
        Ok(())
    }
}

fn find_by_email<'a>(users: &'a [User], email: &Address) -> Option<&'a User> {
    let text = email.to_string().to_lowercase();
    users.iter().find(|user| user.email.to_string().to_lowercase() == text)
}
