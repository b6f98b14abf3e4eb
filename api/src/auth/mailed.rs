//! Links by mail: what signs a user in without a password.
//!
//! The service writes such mail from the domain of `[service] sandbox_sender`, as the account that has
//! that domain: so it is signed and delivered like any other, and the account must be one that may write
//! to anybody. Not from the sandbox sender's own address: that one reaches nobody but an account's owner.

use std::sync::Arc;
use std::time::Duration;

use mail::account::Account;
use mail::address::Address;
use mail::letter::SystemEmail;
use mail::user::{SignInLink, SignInLinkToken, User, UserRole};
use queue::postman::{self, SystemMailer, SystemMailerError};
use store::engine::Batch;

use crate::problem::{ErrorCode, Problem};
use crate::room::AppState;

/// How long a link works that somebody asked for.
const REQUESTED_LINK_TTL: Duration = Duration::from_secs(15 * 60);
/// How long a link works that comes with an invitation.
const INVITATION_LINK_TTL: Duration = Duration::from_secs(3 * 24 * 3600);
/// Who writes; or the other one, when the first is the sandbox sender itself.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "sign-in"];
const RETRY_AFTER_S: u32 = 3_600;
/// Owners who are told of news of their account.
const NOTIFIED_OWNERS_MAX: usize = 10;

/// Why a link is mailed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    /// The user asked for it.
    SignIn,
    /// The user was invited.
    Invitation,
}

/// From where links are mailed.
///
/// # Errors
/// 503: the operator has not said.
pub fn sender_address(room: &AppState) -> Result<Address, Problem> {
    let Some(sandbox) = &room.options.sandbox_sender else {
        let text = "Links cannot be mailed: this service has no sender of its own \
                    (`sandbox_sender` in [service]); sign in with a password";
        return Err(Problem::unavailable(text, RETRY_AFTER_S));
    };
    postman::sibling_address(sandbox, LOCAL_PARTS)
        .ok_or_else(|| Problem::internal("`sandbox_sender` is no address to write from"))
}

/// Makes a link and mails it.
///
/// # Errors
/// The service cannot mail, or not now.
pub async fn send_link(room: &Arc<AppState>, user: &User, why: LinkPurpose) -> Result<(), Problem> {
    let (hall, postman) = (&room.intake, system_mailer(room).await?);
    let store = hall.store();
    let holds = match why {
        LinkPurpose::SignIn => REQUESTED_LINK_TTL,
        LinkPurpose::Invitation => INVITATION_LINK_TTL,
    };
    let expires_at = hall.clock().now().checked_add(holds).map_err(Problem::internal)?;
    let token = SignInLinkToken::new(expires_at, hall.entropy().secret());
    let link = SignInLink::new(user, &token);
    let mut batch = Batch::progress();
    store::sign_in_link::create(&mut batch, &token, &link);
    store.commit(batch).await.map_err(Problem::outage)?;
    let url = format!("{}/auth/link/{}", room.options.base_url, token.text());
    let account = store::account::get(store, user.account).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    let (subject, text) = link_text(why, &url, &account.email);
    let letter = SystemEmail::new(user.email.clone(), subject, text);
    postman.send(hall, letter).await.map_err(|refusal| unavailable_problem(&refusal))
}

/// Tells a user by mail, behind the answer, that their password was changed: if it was not them, they hear of it where
/// whoever did it does not read.
pub fn notify_password_changed(room: &Arc<AppState>, user: &User) {
    let (behind, to) = (Arc::clone(room), user.email.clone());
    room.tasks.spawn(async move {
        let text = format!(
            "The password of {to} at {} was changed, and all other sessions were ended.\n\n\
             If that was not you: have a sign-in link mailed to this address, sign in with it, and set another password \
             within 15 minutes. That ends the other sessions. Then look through your API keys and SMTP credentials.\n",
            behind.options.base_url,
        );
        send_notice(&behind, SystemEmail::new(to, "Your password was changed", text)).await;
    });
}

/// A way into an account that is there after the session that opened it has ended.
#[derive(Debug)]
pub enum AccessGrant {
    /// A credential: what people call it, and its id.
    Credential(&'static str, String),
    /// Another secret of a credential.
    Secret(&'static str, String),
    /// A user who is an owner, or invited to be one.
    Owner(User),
}

impl AccessGrant {
    fn kind(&self) -> &'static str {
        match self {
            Self::Credential(..) => "credential",
            Self::Secret(..) => "secret",
            Self::Owner(_) => "owner",
        }
    }

    /// Subject, and the sentence that says it in full, of an account.
    fn notice_text(&self, account: &Address) -> (String, String) {
        match self {
            Self::Credential(noun, id) => {
                (format!("An {noun} was made"), format!("An {noun} ({id}) was made for the account of {account}"))
            }
            Self::Secret(noun, id) => (
                format!("An {noun} has a new secret"),
                format!("An {noun} ({id}) of the account of {account} was given a new secret"),
            ),
            Self::Owner(User { email, invited, .. }) => {
                let became = if *invited { "was invited to be an owner" } else { "was made an owner" };
                (format!("Somebody {became}"), format!("{email} {became} of the account of {account}"))
            }
        }
    }
}

/// Tells an account's owners by mail, behind the answer, that there is another way in. Of many of one kind in a row the
/// first five are told of, and then one an hour.
pub fn notify_access_granted(room: &Arc<AppState>, account: &Account, way: AccessGrant) {
    if sender_address(room).is_err()
        || room.sign_in_limiter.count_notice(account.id, way.kind(), room.intake.clock().now()).is_err()
    {
        return;
    }
    let (behind, account) = (Arc::clone(room), account.clone());
    room.tasks.spawn(async move {
        let (subject, said) = way.notice_text(&account.email);
        let text = format!(
            "{said} at {}.\n\n\
             If that was nobody of yours: delete the credential or remove the user, look through all API keys, SMTP \
             credentials and users of the account, and change your password, which ends your other sessions.\n",
            behind.options.base_url,
        );
        let users = match store::user::list(behind.intake.store(), account.id).await {
            Ok(users) => users,
            Err(error) => return tracing::warn!(%error, "owners could not be told of a new way in"),
        };
        let owners = users.into_iter().filter(|user| user.role == UserRole::Owner && !user.invited);
        let mut told: Vec<Address> = owners.take(NOTIFIED_OWNERS_MAX).map(|owner| owner.email).collect();
        if told.is_empty() {
            // Nobody has signed in to it yet.
            told.push(account.email);
        }
        for owner in told {
            send_notice(&behind, SystemEmail::new(owner, subject.clone(), text.clone())).await;
        }
    });
}

/// Mails a notice. A service without a sender of its own tells nobody.
async fn send_notice(room: &AppState, letter: SystemEmail) {
    let told = async {
        system_mailer(room).await?.send(&room.intake, letter).await.map_err(|refusal| unavailable_problem(&refusal))
    };
    if let Err(problem) = told.await {
        tracing::warn!(code = problem.code().word, "a notice to a user could not be mailed");
    }
}

fn unavailable_problem(cause: &dyn std::fmt::Display) -> Problem {
    tracing::warn!(%cause, "the account of sandbox_sender's domain cannot send the service's mail");
    Problem::new(ErrorCode::SERVICE_UNAVAILABLE, "Links cannot be mailed at the moment")
}

async fn system_mailer(room: &AppState) -> Result<SystemMailer, Problem> {
    SystemMailer::for_service(&room.intake, sender_address(room)?).await.map_err(|error| match error {
        SystemMailerError::Read(error) => error.into(),
        error => unavailable_problem(&error),
    })
}

/// Subject and text.
fn link_text(why: LinkPurpose, url: &str, account: &Address) -> (&'static str, String) {
    match why {
        LinkPurpose::SignIn => (
            "Your sign-in link",
            format!(
                "Sign in with this link. It works once, within 15 minutes:\n\n{url}\n\n\
                 If you have not asked for it, leave it: without the link nobody can sign in.\n"
            ),
        ),
        LinkPurpose::Invitation => (
            "You were invited",
            format!(
                "You were invited to the account of {account}. Accept and sign in with this link. It works \
                 once, within 3 days:\n\n{url}\n\n\
                 If you do not know who that is, leave it: without the link nothing happens.\n"
            ),
        ),
    }
}
