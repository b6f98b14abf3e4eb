//! Users of an account, their invitations and sessions.
//!
//! An account created before it had users gets its first owner (the account's address) when that address first signs
//! in. An account always has an owner: a commit that removes or demotes one requires that another owner row is
//! unchanged.
//!
//! An address signs in to one account only. An invitation does not claim the address; else others could block it
//! for others, or find out whether it signs in elsewhere. The address is claimed when its reader accepts the
//! invitation, and only that person is informed that it is taken.

mod totp;

use std::time::Duration;

use jiff::Timestamp;
use message::address::Address;
use model::account::Account;
use model::expiring_secret::{ExpiringSecret, SecretKind};
use model::id::{AccountId, SessionId, UserId};
use model::user::{
    PasswordHash, SessionStart, SessionToken, SignInLink, SignInLinkKind, SignInMethod, User, UserRole, UserSession,
};
use net::clock::Clock;
use net::entropy::Entropy;
use queue::services::Services;
use store::engine::{Batch, CommitError, ReadError, Store};
use store::user::USERS_MAX;
use thiserror::Error;

/// Attempts to record a re-authentication in a session that other requests change.
const REAUTHENTICATION_ATTEMPTS: usize = 5;

/// Error of a user operation.
#[derive(Debug, Error)]
pub enum UserError {
    /// The address already signs in to this or another account.
    #[error("{0} already signs in to an account")]
    Taken(Address),
    #[error("no such user")]
    Unknown,
    /// An account must have an owner.
    #[error("the account's last owner cannot be removed or demoted; make another user an owner first")]
    LastOwner,
    /// An admin tried to give, change or remove the role of an owner or admin.
    #[error("only an owner can create, change or remove owners and admins")]
    NotPermitted,
    #[error("one-time passwords are already set up; disable them first")]
    TotpActive,
    #[error("there is no secret to confirm; start setting up one-time passwords first")]
    TotpNotPending,
    #[error("one-time passwords are not set up")]
    TotpNotActive,
    /// A one-time password or recovery code is malformed, wrong or was used.
    #[error("the code is wrong or has already been used")]
    WrongCode,
    /// The secret cannot be sealed, or was sealed with another key.
    #[error("the one-time password secret cannot be encrypted or decrypted")]
    Seal,
    /// The account has [`USERS_MAX`] users.
    #[error("an account has at most {USERS_MAX} users")]
    TooMany,
    /// The rows changed concurrently.
    #[error("the user was changed concurrently; try again")]
    Conflict,
    #[error(transparent)]
    Read(#[from] ReadError),
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

/// Creates, changes and signs in users.
#[derive(Clone)]
pub struct UserService {
    pub store: Store,
    pub clock: Clock,
    pub entropy: Entropy,
}

impl UserService {
    #[must_use]
    pub fn new(services: &Services) -> Self {
        let Services { store, clock, entropy, .. } = services.clone();
        Self { store, clock, entropy }
    }

    /// Builds a user row; nothing is stored.
    #[must_use]
    pub fn new_user(&self, account: AccountId, email: Address, role: UserRole) -> User {
        let now = self.clock.now();
        let id = UserId::new(now, self.entropy.unique_bits());
        User { id, account, email, role, password: None, invited: false, link_series: 0, totp: None, created_at: now }
    }

    /// Finds the user of an address. The account's own address is its first owner, who is created here if needed.
    pub async fn by_email(&self, email: &Address) -> Result<Option<User>, UserError> {
        let text = email.to_string();
        if let Some(user) = store::user::find_by_email(&self.store, &text).await? {
            return Ok(Some(user));
        }
        let Some(account) = store::account::find(&self.store, &text).await? else { return Ok(None) };
        self.create_first_owner(&account).await
    }

    /// Returns an account's earliest owner and creates the first one if the account has no users.
    ///
    /// # Errors
    /// `Unknown` when the account has users but no owner; the store cannot be read or written.
    pub async fn owner(&self, account: &Account) -> Result<User, UserError> {
        if let Some(first) = self.create_first_owner(account).await? {
            return Ok(first);
        }
        let users = store::user::list(&self.store, account.id).await?;
        users.into_iter().find(|user| user.role == UserRole::Owner && !user.invited).ok_or(UserError::Unknown)
    }

    /// Creates the owner of an account without users. Returns `None` if it has users.
    async fn create_first_owner(&self, account: &Account) -> Result<Option<User>, UserError> {
        if !store::user::list(&self.store, account.id).await?.is_empty() {
            return Ok(None);
        }
        let user = self.new_user(account.id, account.email.clone(), UserRole::Owner);
        let mut batch = Batch::progress();
        store::user::create(&mut batch, &user);
        match self.store.commit(batch).await {
            Ok(()) => Ok(Some(user)),
            // Another request created it concurrently.
            Err(CommitError::Conflict { .. }) => {
                Ok(store::user::find_by_email(&self.store, &account.email.to_string())
                    .await?
                    .filter(|user| user.account == account.id))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Signs a user in with a password. The token belongs into the user's browser only.
    ///
    /// # Errors
    /// [`UserError`]; [`UserError::Conflict`] when the stored user differs from `user`.
    pub async fn sign_in(&self, user: &User) -> Result<(SessionToken, UserSession), UserError> {
        let start = SessionStart::new(SignInMethod::Password, None, None);
        self.begin_session(user, start, Batch::progress()).await
    }

    /// Creates a session in the commit of `batch`.
    ///
    /// # Errors
    /// Same as [`Self::sign_in`].
    pub async fn begin_session(
        &self,
        user: &User,
        start: SessionStart,
        mut batch: Batch,
    ) -> Result<(SessionToken, UserSession), UserError> {
        let now = self.clock.now();
        let id = SessionId::new(now, self.entropy.unique_bits());
        let token = SessionToken::new(user.account, user.id, id, self.entropy.secret());
        let session = UserSession::new(&token, now, start);
        // The commit conflicts if the password was changed after it was verified.
        store::user::check_unchanged(&mut batch, user);
        store::session::evict_oldest(&self.store, &mut batch, user.account, user.id, now).await?;
        store::session::create(&mut batch, &session);
        self.store.commit(batch).await?;
        Ok((token, session))
    }

    /// True if an address is a user of this account or invited to it.
    pub async fn is_user(&self, account: &Account, email: &Address) -> Result<bool, UserError> {
        self.owner(account).await?;
        Ok(find_by_email(&store::user::list(&self.store, account.id).await?, email).is_some())
    }

    /// Invites an address to an account, or renews its invitation, by the authority of a user with the role `by`. The
    /// result does not depend on other accounts.
    ///
    /// # Errors
    /// [`UserError`]; [`UserError::Taken`] when the address is a user of this account.
    pub async fn invite(
        &self,
        account: &Account,
        email: Address,
        role: UserRole,
        by: UserRole,
    ) -> Result<User, UserError> {
        self.owner(account).await?;
        require_authority(by, role)?;
        let users = store::user::list(&self.store, account.id).await?;
        if let Some(existing) = find_by_email(&users, &email) {
            if !existing.invited {
                return Err(UserError::Taken(email));
            }
            require_authority(by, existing.role)?;
            let after = User { role, ..existing.clone() };
            let mut batch = Batch::progress();
            store::user::update(&mut batch, existing, &after);
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

    /// Makes an invited address a user, after its reader proved ownership.
    ///
    /// # Errors
    /// [`UserError`]; [`UserError::Taken`] when the address signs in to another account.
    pub async fn accept_invitation(&self, invited: &User) -> Result<User, UserError> {
        let (email, after) = (invited.email.to_string(), User { invited: false, ..invited.clone() });
        // The address may own another account whose first owner was not created yet.
        let account = store::account::find(&self.store, &email).await?;
        if account.is_some_and(|account| account.id != invited.account) {
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

    /// Removes a user and ends their sessions and grants, by the authority of a user with the role `by`.
    ///
    /// # Errors
    /// `Unknown` when the user does not exist, `NotPermitted`, `LastOwner` for the last owner, `Conflict` on a
    /// concurrent change; the store cannot be read or written.
    pub async fn remove_user(&self, account: AccountId, id: UserId, by: UserRole) -> Result<(), UserError> {
        let user = store::user::get(&self.store, account, id).await?.ok_or(UserError::Unknown)?;
        require_authority(by, user.role)?;
        let mut batch = Batch::progress();
        self.require_another_owner(&mut batch, &user).await?;
        store::user::delete(&mut batch, &user);
        self.end_sessions(&mut batch, &user, None).await?;
        store::oauth::grant::delete_of_user(&self.store, &mut batch, account, id).await?;
        Ok(self.store.commit(batch).await?)
    }

    /// Changes a user's role, by the authority of a user with the role `by`.
    ///
    /// # Errors
    /// `Unknown` when the user does not exist, `NotPermitted`, `LastOwner` for the last owner, `Conflict` on a
    /// concurrent change; the store cannot be read or written.
    pub async fn change_role(
        &self,
        account: AccountId,
        id: UserId,
        role: UserRole,
        by: UserRole,
    ) -> Result<User, UserError> {
        let before = store::user::get(&self.store, account, id).await?.ok_or(UserError::Unknown)?;
        require_authority(by, before.role)?;
        require_authority(by, role)?;
        let after = User { role, ..before.clone() };
        let mut batch = Batch::progress();
        if role != UserRole::Owner {
            self.require_another_owner(&mut batch, &before).await?;
        }
        if role < before.role {
            store::oauth::grant::delete_of_user(&self.store, &mut batch, account, id).await?;
        }
        store::user::update(&mut batch, &before, &after);
        self.store.commit(batch).await?;
        Ok(after)
    }

    /// Sets a user's password, ends their sessions except `stays`, and invalidates earlier sign-in links. Returns the
    /// number of ended sessions.
    ///
    /// # Errors
    /// [`UserError`]; [`UserError::Conflict`] when the stored user differs from `before`.
    pub async fn set_password(
        &self,
        before: &User,
        password: PasswordHash,
        stays: SessionId,
    ) -> Result<usize, UserError> {
        let after = before.with_password(Some(password));
        let mut batch = Batch::progress();
        store::user::update(&mut batch, before, &after);
        let sessions_ended = self.end_sessions(&mut batch, before, Some(stays)).await?;
        self.store.commit(batch).await?;
        Ok(sessions_ended)
    }

    /// Removes a user's password and one-time passwords, ends all their sessions, grants and links, and creates a
    /// sign-in link for one use. It serves stolen addresses, and forgotten passwords and lost authenticator apps where
    /// no mail reaches the user. Returns the link's token and the number of ended sessions.
    ///
    /// # Errors
    /// [`UserError`]; [`UserError::Unknown`] when the address signs in to no account.
    pub async fn reset_password(
        &self,
        email: &Address,
        link_holds: Duration,
    ) -> Result<(ExpiringSecret, usize), UserError> {
        let before = self.by_email(email).await?.ok_or(UserError::Unknown)?;
        let after = User { totp: None, ..before.with_password(None) };
        let mut batch = Batch::progress();
        store::user::update(&mut batch, &before, &after);
        let token = self.create_link(&mut batch, &after, SignInLinkKind::SignIn, link_holds);
        let sessions_ended = self.end_sessions(&mut batch, &before, None).await?;
        store::oauth::grant::delete_of_user(&self.store, &mut batch, before.account, before.id).await?;
        self.store.commit(batch).await?;
        Ok((token, sessions_ended))
    }

    /// Adds a sign-in link for one use to the commit. Returns its token.
    pub fn create_link(
        &self,
        batch: &mut Batch,
        user: &User,
        kind: SignInLinkKind,
        lifetime: Duration,
    ) -> ExpiringSecret {
        let expires_at = self.clock.now().checked_add(lifetime).unwrap_or(Timestamp::MAX);
        let token = ExpiringSecret::new(SecretKind::SignInLink, expires_at, self.entropy.secret());
        store::sign_in_link::create(batch, &token, &SignInLink::new(user, &token, kind));
        token
    }

    /// Records in the session that the user proved their identity again. `after` is the user as it must be stored: an
    /// accepted code is used up. Returns the session.
    ///
    /// # Errors
    /// [`UserError`]; [`UserError::Conflict`] when the stored user differs from `before`, or the session has ended.
    pub async fn reauthenticate(
        &self,
        session: &UserSession,
        before: &User,
        after: &User,
    ) -> Result<UserSession, UserError> {
        // A request may extend the session at the same time, which changes its row.
        for _ in 0..REAUTHENTICATION_ATTEMPTS {
            let stored = store::session::get(&self.store, session.account, session.user, session.id).await?;
            let stored = stored.ok_or(UserError::Conflict)?;
            let stamped = UserSession { reauthenticated_at: Some(self.clock.now()), ..stored.clone() };
            let mut batch = Batch::progress();
            store::session::update(&mut batch, &stored, &stamped);
            store::user::update(&mut batch, before, after);
            match self.store.commit(batch).await {
                Ok(()) => return Ok(stamped),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(UserError::Conflict)
    }

    /// Ends all sessions of a user except `stays`. Returns their number.
    pub async fn end_other_sessions(&self, user: &User, stays: SessionId) -> Result<usize, UserError> {
        let mut batch = Batch::progress();
        let sessions_ended = self.end_sessions(&mut batch, user, Some(stays)).await?;
        self.store.commit(batch).await?;
        Ok(sessions_ended)
    }

    async fn end_sessions(&self, batch: &mut Batch, user: &User, stays: Option<SessionId>) -> Result<usize, ReadError> {
        let mut sessions = store::session::list_by_user(&self.store, user.account, user.id).await?;
        sessions.retain(|session| Some(session.id) != stays);
        sessions.iter().for_each(|session| store::session::delete(batch, session));
        let now = self.clock.now();
        Ok(sessions.iter().filter(|session| session.is_live(now)).count())
    }

    /// If an owner is removed or demoted, makes the commit depend on another owner's row.
    async fn require_another_owner(&self, batch: &mut Batch, leaving: &User) -> Result<(), UserError> {
        if leaving.role != UserRole::Owner || leaving.invited {
            return Ok(());
        }
        let users = store::user::list(&self.store, leaving.account).await?;
        let other = users.iter().find(|user| user.role == UserRole::Owner && !user.invited && user.id != leaving.id);
        store::user::check_unchanged(batch, other.ok_or(UserError::LastOwner)?);
        Ok(())
    }
}

/// Requires that a user with the role `by` may manage users with the role `other`.
fn require_authority(by: UserRole, other: UserRole) -> Result<(), UserError> {
    by.may_manage(other).then_some(()).ok_or(UserError::NotPermitted)
}

fn find_by_email<'a>(users: &'a [User], email: &Address) -> Option<&'a User> {
    let text = email.to_string().to_lowercase();
    users.iter().find(|user| user.email.to_string().to_lowercase() == text)
}
