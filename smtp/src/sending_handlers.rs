//! Session handlers of the two listeners that send mail: submission by login, relay by network.
//!
//! Both submit to the queue's intake. MAIL checks whether the server accepts mail and whether the account may send from
//! the address. After the content, the author in the header is decisive. A [`SubmitError`]
//! of the intake is translated to a reply only here.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use accounts::credential_auth::CredentialAuthenticator;
use jiff::{SignedDuration, Timestamp};
use message::header::MessageError;
use message::reply::{Enhanced, Severity, SmtpReply};
use model::credential::SecretHash;
use model::draft::FutureRelease;
use model::email::Ingress;
use model::suppression::{BlockReason, BlockedRecipient};
use net::limit::rate_limit::RateLimitStatus;
use queue::intake::account_limits::AccountLimits;
use queue::intake::submit_error::SubmitError;
use store::access::{self, AccessError, Tenant};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::handler::{Hook, HookVerdict, SaslCredentials, SessionHandler};
use crate::listener::{Listener, ServedHandler, ServedListener};
use crate::submission::MessageSubmitter;

/// A login is revalidated at the next MAIL, RCPT or end of content when it is older than this. So a credential that is
/// deleted on another node stops working in open sessions too. A change on this node takes effect at once.
const LOGIN_CACHE_TTL: Duration = Duration::from_secs(1);

/// The time for which clients are assumed to retry.
const CLIENT_RETRY_WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// Session handler of submission: a client authenticates with an SMTP credential and sends for its account.
pub struct SubmissionHandler {
    submitter: MessageSubmitter,
    credentials: Arc<CredentialAuthenticator>,
    limits: Arc<AccountLimits>,
    username: String,
}

/// An authenticated session, and until when the login is valid without another check.
pub struct SubmissionSession {
    tenant: Tenant,
    password: SecretHash,
    client_address: IpAddr,
    valid_until: Timestamp,
    /// The account's access revision when the credential was read.
    revision: u64,
}

impl SubmissionHandler {
    /// `username` is the login name for all accounts; the password identifies the credential.
    pub fn new(
        submitter: MessageSubmitter,
        credentials: Arc<CredentialAuthenticator>,
        limits: Arc<AccountLimits>,
        username: String,
    ) -> Self {
        Self { submitter, credentials, limits, username }
    }

    async fn authenticate(&self, credentials: &SaslCredentials, from: IpAddr) -> Result<SubmissionSession, SmtpReply> {
        let password = SecretHash::from_smtp_password(&credentials.password);
        match password.filter(|_| credentials.username == self.username) {
            Some(password) => self.verify_password(password, from).await,
            None => Err(invalid_credentials_reply()),
        }
    }

    async fn verify_password(&self, password: SecretHash, from: IpAddr) -> Result<SubmissionSession, SmtpReply> {
        match self.credentials.authenticate_smtp_password(&password, Some(from)).await {
            Ok(tenant) => {
                let now = self.submitter.services.clock.now();
                let holds_until = now.checked_add(LOGIN_CACHE_TTL).unwrap_or(now);
                let revision = self.credentials.access_revision(tenant.account().id);
                Ok(SubmissionSession { tenant, password, client_address: from, valid_until: holds_until, revision })
            }
            Err(AccessError::Denied(_)) => Err(invalid_credentials_reply()),
            Err(AccessError::AddressNotAllowed) => {
                let text = "ip_not_allowed: this credential may not be used from your address";
                Err(reply(535, (5, 7, 1), text))
            }
            Err(AccessError::Unavailable(error)) => {
                if !error.is_away() {
                    tracing::error!(%error, "authentication check failed");
                }
                Err(reply(454, (4, 7, 0), "Temporary authentication failure; try again later"))
            }
        }
    }

    /// Revalidates a login that is older than a second, or older than the last change of its account's access.
    async fn revalidate(&self, login: &mut SubmissionSession) -> Result<(), SmtpReply> {
        let revision = self.credentials.access_revision(login.tenant.account().id);
        if self.submitter.services.clock.now() < login.valid_until && revision == login.revision {
            return Ok(());
        }
        match self.verify_password(login.password, login.client_address).await {
            // The revision was read before the credential: a change in between causes another check at the next
            // command.
            Ok(renewed) => *login = SubmissionSession { revision, ..renewed },
            // Not 535, because the client sent no AUTH (RFC 4954 6).
            Err(refused) if refused.severity() == Severity::Permanent => {
                return Err(reply(530, (5, 7, 0), "Authentication required: the credential is no longer valid"));
            }
            Err(later) => return Err(later),
        }
        Ok(())
    }
}

impl ServedHandler for SubmissionHandler {
    fn serve(listener: Listener<Self>, shutdown: CancellationToken) -> ServedListener {
        Box::pin(listener.serve(shutdown))
    }
}

impl SessionHandler for SubmissionHandler {
    type SessionContext = Option<Box<SubmissionSession>>;

    fn is_user_name(&self, user: &str) -> bool {
        user == self.username
    }

    async fn handle(&self, context: &mut Option<Box<SubmissionSession>>, hook: Hook) -> HookVerdict {
        if let Hook::Authenticate(credentials, from) = hook {
            return match self.authenticate(&credentials, from).await {
                Ok(login) => {
                    let account = login.tenant.account().id;
                    *context = Some(Box::new(login));
                    HookVerdict::AuthenticatedAs(account)
                }
                Err(reply) => HookVerdict::Reply(reply),
            };
        }
        let Some(login) = context else {
            // The session does not call hooks without a login; a refusal is the safe default.
            return HookVerdict::Reply(reply(530, (5, 7, 0), "Authentication required"));
        };
        // At MAIL, each RCPT, and the end of the content.
        if let Err(reply) = self.revalidate(login).await {
            return HookVerdict::Reply(reply);
        }
        // Each recipient counts as one request against the account's API rate limit.
        if matches!(hook, Hook::RcptTo(_))
            && let Err(status) = self.limits.requests.check(login.tenant.account())
        {
            return HookVerdict::Reply(rate_limited_reply(status));
        }
        handle_sending_hook(&self.submitter, &login.tenant, hook, Ingress::Submission).await
    }
}

/// Session handler of relay: every client in the listener's networks sends for one account. These are the operator's
/// own hosts, so there is no rate limit.
pub struct RelayHandler {
    submitter: MessageSubmitter,
    account: watch::Receiver<String>,
}

impl RelayHandler {
    /// `account` is an account id or its owner's address. New sessions use the current value.
    pub fn new(submitter: MessageSubmitter, account: watch::Receiver<String>) -> Self {
        Self { submitter, account }
    }
}

impl ServedHandler for RelayHandler {
    fn serve(listener: Listener<Self>, shutdown: CancellationToken) -> ServedListener {
        Box::pin(listener.serve(shutdown))
    }
}

impl SessionHandler for RelayHandler {
    type SessionContext = Option<Tenant>;

    async fn handle(&self, context: &mut Option<Tenant>, hook: Hook) -> HookVerdict {
        // Looked up once per session: a long session keeps its account.
        if context.is_none() {
            let account = self.account.borrow().clone();
            match access::operator_tenant(&self.submitter.services.store, &account).await {
                Ok(tenant) => *context = Some(tenant),
                Err(error) => {
                    tracing::error!(account, %error, "cannot look up the relay account");
                    let text = match error {
                        AccessError::Unavailable(_) => format!("Cannot look up relay account {account}"),
                        _ => format!("Relay account {account} does not exist"),
                    };
                    return HookVerdict::Reply(reply(451, (4, 3, 5), text));
                }
            }
        }
        match context {
            Some(tenant) => handle_sending_hook(&self.submitter, tenant, hook, Ingress::Relay).await,
            None => HookVerdict::Reply(reply(451, (4, 3, 0), "Try again later")),
        }
    }
}

async fn handle_sending_hook(
    submitter: &MessageSubmitter,
    tenant: &Tenant,
    hook: Hook,
    ingress: Ingress,
) -> HookVerdict {
    let MessageSubmitter { services, intake, .. } = submitter;
    // RFC 4865 4: checked before the content is sent.
    if let Hook::MailFrom { release: Some(FutureRelease::At(at)), .. } = hook
        && let Err(why) = intake.validate_scheduled_at(at)
    {
        return HookVerdict::Reply(reply(501, (5, 5, 4), format!("HOLDUNTIL {why}")));
    }
    let verdict = match hook {
        Hook::MailFrom { reverse_path, .. } => match (intake.check_ready(), reverse_path) {
            (Ok(()), Some(address)) => intake.authorize_sender(tenant, &address).await.map(|()| HookVerdict::Accept),
            // A null reverse path belongs to no account; the author in the header is decisive.
            (ready, _) => ready.map(|()| HookVerdict::Accept),
        },
        // Boxed, so that the futures of the other hooks stay small.
        Hook::Submit(message) => Box::pin(submitter.submit(tenant, *message, ingress)).await,
        Hook::RcptTo(address) => intake.check_recipient(tenant, &address).await.map(|()| HookVerdict::Accept),
        Hook::Authenticate(..) => return HookVerdict::Reply(invalid_credentials_reply()),
    };
    verdict.unwrap_or_else(|refusal| HookVerdict::Reply(refusal_reply(&refusal, services.clock.now())))
}

fn rate_limited_reply(status: RateLimitStatus) -> SmtpReply {
    let RateLimitStatus { limit, reset_s, .. } = status;
    let text = format!("rate_limit_exceeded: more than {limit} requests per second; try again in {reset_s} s");
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

/// The reply to a refusal: SMTP codes, the error name that the API uses too, and what to do.
fn refusal_reply(refusal: &SubmitError, now: Timestamp) -> SmtpReply {
    let named = |name: &str| format!("{name}: {refusal}");
    match refusal {
        SubmitError::DomainNotVerified { .. } | SubmitError::SandboxNotConfigured { .. } => {
            reply(550, (5, 7, 1), named("domain_not_verified"))
        }
        SubmitError::SandboxRestricted { .. } => reply(550, (5, 7, 1), named("sandbox_restricted")),
        SubmitError::ProductionRequired => reply(550, (5, 7, 1), named("production_access_required")),
        SubmitError::DomainNotAllowed { .. } => reply(550, (5, 7, 1), named("forbidden")),
        SubmitError::Policy(_) | SubmitError::NotApproved => reply(550, (5, 7, 1), named("policy_violation")),
        SubmitError::AccountSuspended => reply(550, (5, 7, 1), named("account_suspended")),
        SubmitError::Suppressed { blocked, .. } => reply(550, (5, 7, 1), suppression_text(blocked)),
        // A client that retries within a day may succeed; no client retries for longer.
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

/// Text with the error name and reason of the first blocked recipient, such as `suppressed: hard_bounce`.
fn suppression_text(blocked: &[BlockedRecipient]) -> String {
    match blocked.first().map(|recipient| recipient.reason) {
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
    use model::usage::{ExceededCap, UsagePeriod};

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
    fn exceeded_quotas_defer_up_to_a_day_or_refuse() {
        for (period, now, start) in [
            (UsagePeriod::day as fn(Timestamp) -> UsagePeriod, "2026-01-10T00:00:01Z", "452 4.5.3 plan_limit: "),
            (UsagePeriod::month, "2026-01-10T00:00:01Z", "550 5.7.1 plan_limit: "),
            (UsagePeriod::month, "2026-01-31T12:00:00Z", "452 4.5.3 plan_limit: "),
        ] {
            let now: Timestamp = now.parse().unwrap();
            let refusal = SubmitError::PlanLimit(ExceededCap { period: period(now), used: 100, cap: 100 });
            let reply_text = refusal_reply(&refusal, now).to_string();
            assert!(reply_text.starts_with(start), "{reply_text}");
        }
    }
}
