//! The rules of the two doors that send: submission by login, relay by network.
//!
//! Both answer with the hall. At MAIL the hall is asked whether there is room and whether the account
//! may send from there; at the end of the content the author in the header decides
//! (completions-email.md 2.13). What the hall refuses becomes a reply here and nowhere else.

use std::net::IpAddr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use mail::credential::SecretHash;
use mail::draft::FutureRelease;
use mail::email::Ingress;
use mail::message::MessageError;
use mail::reply::{Enhanced, Severity, SmtpReply};
use mail::suppression::{BlockReason, BlockedRecipient};
use queue::accept::Intake;
use queue::rate::RateLimitStatus;
use queue::refusal::SubmitError;
use store::access::{self, AccessError, Tenant};
use tokio::sync::watch;

use crate::answers::{Hook, HookVerdict, SaslCredentials, SessionHandler};
use crate::take::submit_message;

/// A login is checked again, at the next MAIL, RCPT or end of content, when it is older than this: a credential that
/// was deleted at another node sends no more in a session that is open. A change at this node counts at once.
const LOGIN_CACHE_TTL: Duration = Duration::from_secs(1);

/// For so long a client is taken to try again.
const CLIENT_RETRY_WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// Submission: who logs in with an SMTP credential sends for its account.
pub struct SubmissionHandler {
    hall: Intake,
    username: String,
}

/// Who logged in with what, and until when that is taken as it was found.
pub struct SubmissionSession {
    tenant: Tenant,
    password: SecretHash,
    client_address: IpAddr,
    valid_until: Timestamp,
    /// The account's access revision when the credential was read.
    revision: u64,
}

impl SubmissionHandler {
    /// Logins take this user name, for all accounts; the password tells them apart.
    #[must_use]
    pub fn new(hall: Intake, username: String) -> Self {
        Self { hall, username }
    }

    async fn authenticate(&self, credentials: &SaslCredentials, from: IpAddr) -> Result<SubmissionSession, SmtpReply> {
        let password = SecretHash::from_smtp_password(&credentials.password);
        match password.filter(|_| credentials.username == self.username) {
            Some(password) => self.verify_password(password, from).await,
            None => Err(invalid_credentials_reply()),
        }
    }

    async fn verify_password(&self, password: SecretHash, from: IpAddr) -> Result<SubmissionSession, SmtpReply> {
        match self.hall.authenticate_smtp_password(&password, Some(from)).await {
            Ok(tenant) => {
                let now = self.hall.clock().now();
                let holds_until = now.checked_add(LOGIN_CACHE_TTL).unwrap_or(now);
                let revision = self.hall.access_revision(tenant.account().id);
                Ok(SubmissionSession { tenant, password, client_address: from, valid_until: holds_until, revision })
            }
            Err(AccessError::Denied(_)) => Err(invalid_credentials_reply()),
            Err(AccessError::AddressNotAllowed) => {
                let text = "ip_not_allowed: this credential may not be used from your address";
                Err(reply(535, (5, 7, 1), text))
            }
            Err(AccessError::Unavailable(error)) => {
                if !error.is_away() {
                    tracing::error!(%error, "logins cannot be checked");
                }
                Err(reply(454, (4, 7, 0), "Logins cannot be checked at the moment; try again later"))
            }
        }
    }

    /// Checks a login again that is older than a second, or than a change of who its account lets in.
    async fn revalidate(&self, login: &mut SubmissionSession) -> Result<(), SmtpReply> {
        let revision = self.hall.access_revision(login.tenant.account().id);
        if self.hall.clock().now() < login.valid_until && revision == login.revision {
            return Ok(());
        }
        match self.verify_password(login.password, login.client_address).await {
            // The revision was read before the credential: a change in between makes the next command check again.
            Ok(again) => *login = SubmissionSession { revision, ..again },
            // Not 535: no login was asked for (RFC 4954 6).
            Err(refused) if refused.severity() == Severity::Permanent => {
                return Err(reply(530, (5, 7, 0), "Authentication required: the login holds no more"));
            }
            Err(later) => return Err(later),
        }
        Ok(())
    }
}

impl SessionHandler for SubmissionHandler {
    type SessionContext = Option<Box<SubmissionSession>>;

    fn is_user_name(&self, user: &str) -> bool {
        user == self.username
    }

    async fn handle(&self, visitor: &mut Option<Box<SubmissionSession>>, question: Hook) -> HookVerdict {
        if let Hook::Authenticate(credentials, from) = question {
            return match self.authenticate(&credentials, from).await {
                Ok(login) => {
                    let account = login.tenant.account().id;
                    *visitor = Some(Box::new(login));
                    HookVerdict::AuthenticatedAs(account)
                }
                Err(reply) => HookVerdict::Reply(reply),
            };
        }
        let Some(login) = visitor else {
            // The session does not get here without a login; should it, nothing is sent.
            return HookVerdict::Reply(reply(530, (5, 7, 0), "Authentication required"));
        };
        // MAIL, each RCPT, and the end of the content.
        if let Err(reply) = self.revalidate(login).await {
            return HookVerdict::Reply(reply);
        }
        // The bucket of the account's API requests: one for each recipient (completions-email.md 2.2).
        if matches!(question, Hook::RcptTo(_))
            && let Err(standing) = self.hall.check_rate_limit(login.tenant.account())
        {
            return HookVerdict::Reply(rate_limited_reply(standing));
        }
        handle_sending_hook(&self.hall, &login.tenant, question, Ingress::Submission).await
    }
}

/// Relay: whoever may connect sends for one account. These are the operator's own hosts: they are not asked
/// how often they come.
pub struct RelayHandler {
    hall: Intake,
    account: watch::Receiver<String>,
}

impl RelayHandler {
    /// `account` is its id or its owner's address; who comes after it was changed sends for the new one.
    #[must_use]
    pub fn new(hall: Intake, account: watch::Receiver<String>) -> Self {
        Self { hall, account }
    }
}

impl SessionHandler for RelayHandler {
    type SessionContext = Option<Tenant>;

    async fn handle(&self, visitor: &mut Option<Tenant>, question: Hook) -> HookVerdict {
        // Once a session: a long one goes on as the account it began as.
        if visitor.is_none() {
            let account = self.account.borrow().clone();
            match access::operator_tenant(self.hall.store(), &account).await {
                Ok(tenant) => *visitor = Some(tenant),
                Err(error) => {
                    tracing::error!(account, %error, "the account of a relay listener");
                    return HookVerdict::Reply(reply(451, (4, 3, 5), "This listener's account is not there"));
                }
            }
        }
        match visitor {
            Some(tenant) => handle_sending_hook(&self.hall, tenant, question, Ingress::Relay).await,
            None => HookVerdict::Reply(reply(451, (4, 3, 0), "Try again later")),
        }
    }
}

async fn handle_sending_hook(hall: &Intake, tenant: &Tenant, question: Hook, door: Ingress) -> HookVerdict {
    // RFC 4865 4: before a byte of it has come.
    if let Hook::MailFrom { release: Some(FutureRelease::At(at)), .. } = question
        && let Err(why) = hall.validate_scheduled_at(at)
    {
        return HookVerdict::Reply(reply(501, (5, 5, 4), format!("HOLDUNTIL {why}")));
    }
    let judged = match question {
        Hook::MailFrom { reverse_path, .. } => match (hall.check_ready(), reverse_path) {
            (Ok(()), Some(address)) => hall.authorize_sender(tenant, &address).await.map(|()| HookVerdict::Accept),
            // The null path belongs to nobody; the author in the header decides.
            (ready, _) => ready.map(|()| HookVerdict::Accept),
        },
        // What every other answer should not have to have room for.
        Hook::Submit(message) => Box::pin(submit_message(hall, tenant, *message, door)).await,
        Hook::RcptTo(address) => hall.check_recipient(tenant, &address).await.map(|()| HookVerdict::Accept),
        Hook::Authenticate(..) => return HookVerdict::Reply(invalid_credentials_reply()),
    };
    judged.unwrap_or_else(|refusal| HookVerdict::Reply(refusal_reply(&refusal, hall.clock().now())))
}

fn rate_limited_reply(standing: RateLimitStatus) -> SmtpReply {
    let RateLimitStatus { limit, reset_s, .. } = standing;
    let text = format!("rate_limit_exceeded: more than {limit} requests a second; try again in {reset_s} s");
    reply(451, (4, 7, 0), text)
}

fn invalid_credentials_reply() -> SmtpReply {
    reply(535, (5, 7, 8), "Authentication credentials invalid")
}

pub(crate) fn reply(
    code: u16,
    (class, subject, detail): (u8, u16, u16),
    text: impl Into<std::borrow::Cow<'static, str>>,
) -> SmtpReply {
    SmtpReply::new(code, Enhanced::new(class, subject, detail), text)
}

/// A refusal in SMTP's words: a code for machines, a name that the API uses too, what to do for people.
fn refusal_reply(refusal: &SubmitError, now: Timestamp) -> SmtpReply {
    let named = |name: &str| format!("{name}: {refusal}");
    match refusal {
        SubmitError::DomainNotVerified { .. } | SubmitError::SandboxNotConfigured { .. } => {
            reply(550, (5, 7, 1), named("domain_not_verified"))
        }
        SubmitError::SandboxRestricted { .. } => reply(550, (5, 7, 1), named("sandbox_restricted")),
        SubmitError::ProductionRequired => reply(550, (5, 7, 1), named("production_access_required")),
        SubmitError::DomainNotAllowed { .. } => reply(550, (5, 7, 1), named("forbidden")),
        SubmitError::AccountSuspended => reply(550, (5, 7, 1), named("account_suspended")),
        SubmitError::Suppressed { blocked, .. } => reply(550, (5, 7, 1), suppression_text(blocked)),
        // Whoever tries again within the day may have more luck; longer than that no client waits.
        SubmitError::PlanLimit(cap) => match cap.period.ends_at().duration_since(now) < CLIENT_RETRY_WINDOW {
            true => reply(452, (4, 5, 3), named("plan_limit")),
            false => reply(550, (5, 7, 1), named("plan_limit")),
        },
        SubmitError::StorageFull(_) => reply(452, (4, 3, 1), named("plan_limit")),
        SubmitError::Message(MessageError::Loop) => reply(554, (5, 4, 6), refusal.to_string()),
        SubmitError::Message(_) | SubmitError::Invalid { .. } => reply(550, (5, 6, 0), refusal.to_string()),
        SubmitError::TooLarge { .. } => reply(552, (5, 3, 4), refusal.to_string()),
        SubmitError::TooManyRecipients { .. } => reply(452, (4, 5, 3), refusal.to_string()),
        SubmitError::InsufficientStorage => reply(452, (4, 3, 1), refusal.to_string()),
        SubmitError::SigningFailed
        | SubmitError::Unavailable
        | SubmitError::DoneConcurrently
        | SubmitError::Unconfirmed { .. } => reply(451, (4, 3, 0), refusal.to_string()),
    }
}

/// The first reason, in a word that programs know: `suppressed: hard_bounce`.
fn suppression_text(blocked: &[BlockedRecipient]) -> String {
    match blocked.first().map(|one| one.reason) {
        Some(BlockReason::Suppressed { reason, .. }) => format!("suppressed: {}", reason.word()),
        Some(BlockReason::OptedOut { category, .. }) => {
            format!("category_unsubscribed: {}", format!("{category:?}").to_lowercase())
        }
        None => "suppressed".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mail::usage::{ExceededCap, UsagePeriod};

    #[test]
    fn refusals_keep_their_codes_and_names() {
        for (refusal, start) in [
            (
                SubmitError::DomainNotVerified { domain: "b.example".parse().unwrap() },
                "550 5.7.1 domain_not_verified: ",
            ),
            (
                SubmitError::SandboxNotConfigured { domain: "b.example".parse().unwrap() },
                "550 5.7.1 domain_not_verified: the sandbox is not set up on this server",
            ),
            (
                SubmitError::SandboxRestricted { allowed: "a@b.example".parse().unwrap() },
                "550 5.7.1 sandbox_restricted: ",
            ),
            (SubmitError::ProductionRequired, "550 5.7.1 production_access_required: "),
            (SubmitError::InsufficientStorage, "452 4.3.1 "),
            (SubmitError::Unavailable, "451 4.3.0 "),
            (SubmitError::TooLarge { bytes_max: 1 }, "552 5.3.4 "),
            (SubmitError::Message(MessageError::Loop), "554 5.4.6 "),
        ] {
            assert!(refusal_reply(&refusal, Timestamp::UNIX_EPOCH).to_string().starts_with(start), "{refusal}");
        }
    }
    #[test]
    fn who_has_used_up_the_plan_tries_again_within_a_day_or_not_at_all() {
        for (period, now, start) in [
            (UsagePeriod::day as fn(Timestamp) -> UsagePeriod, "2026-01-10T00:00:01Z", "452 4.5.3 plan_limit: "),
            (UsagePeriod::month, "2026-01-10T00:00:01Z", "550 5.7.1 plan_limit: "),
            (UsagePeriod::month, "2026-01-31T12:00:00Z", "452 4.5.3 plan_limit: "),
        ] {
            let now: Timestamp = now.parse().unwrap();
            let refusal = SubmitError::PlanLimit(ExceededCap { period: period(now), used: 100, cap: 100 });
            let said = refusal_reply(&refusal, now).to_string();
            assert!(said.starts_with(start), "{said}");
        }
    }
}
