//! Email of the service to its users: sign-in links, invitations and security notices.
//!
//! It is sent from the domain of `[service] sandbox_sender`, by the account that owns this domain, so it is signed and
//! delivered like any other email. The account must have production access. The sandbox sender's own address is not
//! used: it can reach only an account's owner.

use crate::prelude::*;
use accounts::users::UserService;
use model::account::Account;
use model::system_email::SystemEmail;
use model::user::{SignInLinkKind, User, UserRole};
use queue::intake::sender_authorization::sibling_address;
use queue::intake::system_mailer::{SystemMailer, SystemMailerError};

/// Lifetime of a requested link.
const REQUESTED_LINK_TTL: Duration = Duration::from_secs(15 * 60);
/// Lifetime of an invitation's link.
const INVITATION_LINK_TTL: Duration = Duration::from_secs(3 * 24 * 3600);
/// Local part of the sender; the second one is used if the first is the sandbox sender's.
const LOCAL_PARTS: [&str; 2] = ["no-reply", "sign-in"];
const RETRY_AFTER_S: u32 = 3_600;
/// Maximum number of owners that are notified about an account.
const NOTIFIED_OWNERS_MAX: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkPurpose {
    SignIn,
    Invitation,
}

/// The sender address of the service's own email.
///
/// # Errors
/// 503: the operator has not configured `sandbox_sender`.
pub fn sender_address(state: &AppState) -> Result<Address> {
    let Some(sandbox) = &state.options.sandbox_sender else {
        let text = "Sign-in links cannot be emailed: this service has no sender address (`sandbox_sender` in \
            [service]); sign in with a password";
        return Err(Problem::unavailable(text, RETRY_AFTER_S));
    };
    sibling_address(sandbox, LOCAL_PARTS)
        .ok_or_else(|| Problem::internal("`sandbox_sender` is not a usable sender address"))
}

/// Creates a sign-in link and mails it.
///
/// # Errors
/// The service cannot send email, or the store is unavailable.
pub async fn send_link(state: &State, user: &User, purpose: LinkPurpose) -> Result<()> {
    let mailer = system_mailer(state).await?;
    let users = UserService::new(&state.services);
    let lifetime = match purpose {
        LinkPurpose::SignIn => REQUESTED_LINK_TTL,
        LinkPurpose::Invitation => INVITATION_LINK_TTL,
    };
    let mut batch = Batch::progress();
    let token = users.create_link(&mut batch, user, SignInLinkKind::SignIn, lifetime);
    users.store.commit(batch).await.map_err(Problem::outage)?;
    let url = format!("{}/auth/link/{}", state.options.base_url, token.text());
    let account = store::account::get(&users.store, user.account).await?;
    let account = account.ok_or_else(|| Problem::not_found("account"))?;
    let (subject, text) = link_text(purpose, &url, &account.email);
    let email = SystemEmail::new(user.email.clone(), subject, text).with_secret_link();
    mailer.send(&state.accounts.intake, email).await.map_err(|refusal| unavailable_problem(&refusal))
}

/// Notifies the user by email, after the response, that their password was changed. An attacker who changed it does not
/// read this mailbox.
pub fn notify_password_changed(state: &State, user: &User) {
    let (task_state, to) = (Arc::clone(state), user.email.clone());
    state.background.tasks.spawn(async move {
        let text = format!(
            "The password of {to} at {} has been changed, and all other sessions have been ended.\n\n\
             If this was not you, request a sign-in link for this address, sign in with it, and set a new password \
             within 15 minutes. That ends all other sessions. Then review your API keys and SMTP credentials.\n",
            task_state.options.base_url,
        );
        send_notice(&task_state, SystemEmail::new(to, "Your password was changed", text)).await;
    });
}

/// Notifies the user by email, after the response, that their one-time passwords were set up or removed.
pub fn notify_totp_changed(state: &State, user: &User, active: bool) {
    let (task_state, to) = (Arc::clone(state), user.email.clone());
    state.background.tasks.spawn(async move {
        let (subject, change) = match active {
            true => ("One-time passwords were set up", "set up"),
            false => ("One-time passwords were removed", "removed"),
        };
        let text = format!(
            "One-time passwords were {change} for the sign-in of {to} at {}.\n\n\
             If this was not you, change your password, which ends all other sessions, and review your API keys and \
             SMTP credentials. If you can no longer sign in, ask the operator of the service to reset your user.\n",
            task_state.options.base_url,
        );
        send_notice(&task_state, SystemEmail::new(to, subject, text)).await;
    });
}

/// Access to an account that outlives the session that created it.
#[derive(Debug)]
pub enum AccessGrant {
    /// A new credential: its noun and id.
    Credential(&'static str, String),
    /// A new secret of a credential: its noun and id.
    Secret(&'static str, String),
    /// A user who became an owner or was invited as one.
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

    /// The subject and the first sentence of the notice.
    fn notice_text(&self, account: &Address) -> (String, String) {
        match self {
            Self::Credential(noun, id) => {
                (format!("An {noun} was created"), format!("An {noun} ({id}) was created for the account of {account}"))
            }
            Self::Secret(noun, id) => (
                format!("An {noun} has a new secret"),
                format!("A new secret was created for an {noun} ({id}) of the account of {account}"),
            ),
            Self::Owner(User { email, invited, .. }) => {
                let change = if *invited { "was invited to be an owner" } else { "was made an owner" };
                (format!("A user {change}"), format!("{email} {change} of the account of {account}"))
            }
        }
    }

    /// How an owner ends access that they did not want.
    fn remedy(&self) -> String {
        match self {
            Self::Credential("OAuth grant", _) => "revoke the grant, or remove the user who gave it".to_owned(),
            Self::Credential(noun, _) | Self::Secret(noun, _) => {
                format!("delete the {noun}, or remove the user who did it")
            }
            Self::Owner(_) => "remove the user, and the user who added them".to_owned(),
        }
    }
}

/// Notifies the account's owners by email, after the response, of new access. Rate-limited per account and kind: five
/// in a row, then one an hour.
pub fn notify_access_granted(state: &State, account: &Account, grant: AccessGrant) {
    if sender_address(state).is_err()
        || state.sign_in.limiter.count_notice(account.id, grant.kind(), state.services.clock.now()).is_err()
    {
        return;
    }
    let (task_state, account) = (Arc::clone(state), account.clone());
    state.background.tasks.spawn(async move {
        let (subject, sentence) = grant.notice_text(&account.email);
        let text = format!(
            "{sentence} at {}.\n\n\
             If you do not recognize this, {}, review all API keys, SMTP credentials and users of the account, and \
             change your password, which ends your other sessions.\n",
            task_state.options.base_url,
            grant.remedy(),
        );
        let users = match store::user::list(&task_state.services.store, account.id).await {
            Ok(users) => users,
            Err(error) => return tracing::warn!(%error, "cannot read the owners to notify of new account access"),
        };
        let owners = users.into_iter().filter(|user| user.role == UserRole::Owner && !user.invited);
        let mut recipients: Vec<Address> = owners.take(NOTIFIED_OWNERS_MAX).map(|owner| owner.email).collect();
        if recipients.is_empty() {
            // Nobody has signed in to the account yet.
            recipients.push(account.email);
        }
        for owner in recipients {
            send_notice(&task_state, SystemEmail::new(owner, subject.clone(), text.clone())).await;
        }
    });
}

/// Mails a notice; failures are only logged.
async fn send_notice(state: &AppState, email: SystemEmail) {
    let notice = email.subject.clone();
    let cause = match sender_address(state) {
        Err(_) => Some("`sandbox_sender` in [service] is not set, or not usable".to_owned()),
        Ok(sender) => match SystemMailer::for_service(&state.services.store, sender).await {
            Err(error) => Some(error.to_string()),
            Ok(mailer) => mailer.send(&state.accounts.intake, email).await.err().map(|refusal| refusal.to_string()),
        },
    };
    if let Some(cause) = cause {
        tracing::warn!(notice, cause, "cannot mail a security notice");
    }
}

fn unavailable_problem(cause: &dyn std::fmt::Display) -> Problem {
    tracing::warn!(%cause, "cannot send service email: the account that owns sandbox_sender's domain cannot send");
    Problem::new(ErrorCode::SERVICE_UNAVAILABLE, "Sign-in links cannot be emailed at the moment; try again later")
}

async fn system_mailer(state: &AppState) -> Result<SystemMailer> {
    SystemMailer::for_service(&state.services.store, sender_address(state)?).await.map_err(|error| match error {
        SystemMailerError::Read(error) => error.into(),
        error => unavailable_problem(&error),
    })
}

fn link_text(purpose: LinkPurpose, url: &str, account: &Address) -> (&'static str, String) {
    match purpose {
        LinkPurpose::SignIn => (
            "Your sign-in link",
            format!(
                "Sign in with this link. It works once, within 15 minutes:\n\n{url}\n\n\
                 If you did not request it, ignore this email: nobody can sign in without the link.\n"
            ),
        ),
        LinkPurpose::Invitation => (
            "You have been invited",
            format!(
                "You have been invited to join the account of {account}. Accept and sign in with this link. It works \
                 once, within 3 days:\n\n{url}\n\n\
                 If you do not know the sender, ignore this email: nothing happens without the link.\n"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_says_how_to_end_the_access() {
        let secret = AccessGrant::Secret("API key", "key_1".to_owned());
        assert_eq!(secret.remedy(), "delete the API key, or remove the user who did it");
        let grant = AccessGrant::Credential("OAuth grant", "grant_1".to_owned());
        assert!(grant.remedy().starts_with("revoke the grant"));
    }
}
