//! The rules of the two doors that send: submission by login, relay by network.
//!
//! Both answer with the hall. At MAIL the hall is asked whether there is room and whether the account
//! may send from there; at the end of the content the author in the header decides
//! (completions-email.md 2.13). What the hall refuses becomes a reply here and nowhere else.

use std::net::IpAddr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use mail::credential::SecretHash;
use mail::draft::Release;
use mail::email::Door;
use mail::message::MessageError;
use mail::reply::{Enhanced, Reply, Severity};
use mail::suppression::{BlockReason, Blocked};
use queue::accept::Hall;
use queue::rate::Standing;
use queue::refusal::Refusal;
use store::access::{self, AccessError, Tenant};
use tokio::sync::watch;

use crate::answers::{Answer, Answers, Credentials, Question};
use crate::take::take;

/// A login is checked again, at the next MAIL, RCPT or end of content, when it is older than this: a credential that
/// was deleted at another node sends no more in a session that is open. A change at this node counts at once.
const LOGIN_HOLDS: Duration = Duration::from_secs(1);

/// For so long a client is taken to try again.
const TRIES_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Submission: who logs in with an SMTP credential sends for its account.
pub struct Submission {
    hall: Hall,
    username: String,
}

/// Who logged in with what, and until when that is taken as it was found.
pub struct Login {
    tenant: Tenant,
    password: SecretHash,
    from: IpAddr,
    holds_until: Timestamp,
    /// The account's access revision when the credential was read.
    revision: u64,
}

impl Submission {
    /// Logins take this user name, for all accounts; the password tells them apart.
    #[must_use]
    pub fn new(hall: Hall, username: String) -> Self {
        Self { hall, username }
    }

    async fn log_in(&self, credentials: &Credentials, from: IpAddr) -> Result<Login, Reply> {
        let password = SecretHash::of_smtp_password(&credentials.password);
        match password.filter(|_| credentials.username == self.username) {
            Some(password) => self.look(password, from).await,
            None => Err(denied()),
        }
    }

    async fn look(&self, password: SecretHash, from: IpAddr) -> Result<Login, Reply> {
        match self.hall.by_smtp_password(&password, Some(from)).await {
            Ok(tenant) => {
                let now = self.hall.clock().now();
                let holds_until = now.checked_add(LOGIN_HOLDS).unwrap_or(now);
                let revision = self.hall.access_revision(tenant.account().id);
                Ok(Login { tenant, password, from, holds_until, revision })
            }
            Err(AccessError::Denied(_)) => Err(denied()),
            Err(AccessError::Elsewhere) => {
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
    async fn renew(&self, login: &mut Login) -> Result<(), Reply> {
        let revision = self.hall.access_revision(login.tenant.account().id);
        if self.hall.clock().now() < login.holds_until && revision == login.revision {
            return Ok(());
        }
        match self.look(login.password, login.from).await {
            // The revision was read before the credential: a change in between makes the next command check again.
            Ok(again) => *login = Login { revision, ..again },
            // Not 535: no login was asked for (RFC 4954 6).
            Err(refused) if refused.severity() == Severity::Permanent => {
                return Err(reply(530, (5, 7, 0), "Authentication required: the login holds no more"));
            }
            Err(later) => return Err(later),
        }
        Ok(())
    }
}

impl Answers for Submission {
    type Visitor = Option<Box<Login>>;

    fn is_user_name(&self, user: &str) -> bool {
        user == self.username
    }

    async fn answer(&self, visitor: &mut Option<Box<Login>>, question: Question) -> Answer {
        if let Question::Authenticate(credentials, from) = question {
            return match self.log_in(&credentials, from).await {
                Ok(login) => {
                    let account = login.tenant.account().id;
                    *visitor = Some(Box::new(login));
                    Answer::Account(account)
                }
                Err(reply) => Answer::Said(reply),
            };
        }
        let Some(login) = visitor else {
            // The session does not get here without a login; should it, nothing is sent.
            return Answer::Said(reply(530, (5, 7, 0), "Authentication required"));
        };
        // MAIL, each RCPT, and the end of the content.
        if let Err(reply) = self.renew(login).await {
            return Answer::Said(reply);
        }
        // The bucket of the account's API requests: one for each recipient (completions-email.md 2.2).
        if matches!(question, Question::Recipient(_))
            && let Err(standing) = self.hall.rate(login.tenant.account())
        {
            return Answer::Said(too_often(standing));
        }
        send(&self.hall, &login.tenant, question, Door::Submission).await
    }
}

/// Relay: whoever may connect sends for one account. These are the operator's own hosts: they are not asked
/// how often they come.
pub struct Relay {
    hall: Hall,
    account: watch::Receiver<String>,
}

impl Relay {
    /// `account` is its id or its owner's address; who comes after it was changed sends for the new one.
    #[must_use]
    pub fn new(hall: Hall, account: watch::Receiver<String>) -> Self {
        Self { hall, account }
    }
}

impl Answers for Relay {
    type Visitor = Option<Tenant>;

    async fn answer(&self, visitor: &mut Option<Tenant>, question: Question) -> Answer {
        // Once a session: a long one goes on as the account it began as.
        if visitor.is_none() {
            let account = self.account.borrow().clone();
            match access::by_operator(self.hall.store(), &account).await {
                Ok(tenant) => *visitor = Some(tenant),
                Err(error) => {
                    tracing::error!(account, %error, "the account of a relay listener");
                    return Answer::Said(reply(451, (4, 3, 5), "This listener's account is not there"));
                }
            }
        }
        match visitor {
            Some(tenant) => send(&self.hall, tenant, question, Door::Relay).await,
            None => Answer::Said(reply(451, (4, 3, 0), "Try again later")),
        }
    }
}

async fn send(hall: &Hall, tenant: &Tenant, question: Question, door: Door) -> Answer {
    // RFC 4865 4: before a byte of it has come.
    if let Question::Sender { release: Some(Release::At(at)), .. } = question
        && let Err(why) = hall.may_schedule(at)
    {
        return Answer::Said(reply(501, (5, 5, 4), format!("HOLDUNTIL {why}")));
    }
    let judged = match question {
        Question::Sender { reverse_path, .. } => match (hall.ready(), reverse_path) {
            (Ok(()), Some(address)) => hall.may_send(tenant, &address).await.map(|()| Answer::Granted),
            // The null path belongs to nobody; the author in the header decides.
            (ready, _) => ready.map(|()| Answer::Granted),
        },
        // What every other answer should not have to have room for.
        Question::Take(message) => Box::pin(take(hall, tenant, *message, door)).await,
        Question::Recipient(address) => hall.may_receive(tenant, &address).await.map(|()| Answer::Granted),
        Question::Authenticate(..) => return Answer::Said(denied()),
    };
    judged.unwrap_or_else(|refusal| Answer::Said(refused(&refusal, hall.clock().now())))
}

fn too_often(standing: Standing) -> Reply {
    let Standing { limit, reset_s, .. } = standing;
    let text = format!("rate_limit_exceeded: more than {limit} requests a second; try again in {reset_s} s");
    reply(451, (4, 7, 0), text)
}

fn denied() -> Reply {
    reply(535, (5, 7, 8), "Authentication credentials invalid")
}

pub(crate) fn reply(
    code: u16,
    (class, subject, detail): (u8, u16, u16),
    text: impl Into<std::borrow::Cow<'static, str>>,
) -> Reply {
    Reply::new(code, Enhanced::new(class, subject, detail), text)
}

/// A refusal in SMTP's words: a code for machines, a name that the API uses too, what to do for people.
fn refused(refusal: &Refusal, now: Timestamp) -> Reply {
    let named = |name: &str| format!("{name}: {refusal}");
    match refusal {
        Refusal::DomainNotVerified { .. } | Refusal::SandboxNotSetUp { .. } => {
            reply(550, (5, 7, 1), named("domain_not_verified"))
        }
        Refusal::SandboxRestricted { .. } => reply(550, (5, 7, 1), named("sandbox_restricted")),
        Refusal::ProductionRequired => reply(550, (5, 7, 1), named("production_access_required")),
        Refusal::NotThisDomain { .. } => reply(550, (5, 7, 1), named("forbidden")),
        Refusal::Suspended => reply(550, (5, 7, 1), named("account_suspended")),
        Refusal::Blocked { blocked, .. } => reply(550, (5, 7, 1), blocked_text(blocked)),
        // Whoever tries again within the day may have more luck; longer than that no client waits.
        Refusal::PlanLimit(cap) => match cap.period.ends_at().duration_since(now) < TRIES_FOR {
            true => reply(452, (4, 5, 3), named("plan_limit")),
            false => reply(550, (5, 7, 1), named("plan_limit")),
        },
        Refusal::StorageFull(_) => reply(452, (4, 3, 1), named("plan_limit")),
        Refusal::Message(MessageError::Loop) => reply(554, (5, 4, 6), refusal.to_string()),
        Refusal::Message(_) | Refusal::Invalid { .. } => reply(550, (5, 6, 0), refusal.to_string()),
        Refusal::TooLarge { .. } => reply(552, (5, 3, 4), refusal.to_string()),
        Refusal::TooManyRecipients { .. } => reply(452, (4, 5, 3), refusal.to_string()),
        Refusal::Full => reply(452, (4, 3, 1), refusal.to_string()),
        Refusal::Unsigned | Refusal::Unavailable | Refusal::DoneMeanwhile | Refusal::Unconfirmed { .. } => {
            reply(451, (4, 3, 0), refusal.to_string())
        }
    }
}

/// The first reason, in a word that programs know: `suppressed: hard_bounce`.
fn blocked_text(blocked: &[Blocked]) -> String {
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
    use mail::usage::{Cap, Period};

    #[test]
    fn refusals_keep_their_codes_and_names() {
        for (refusal, start) in [
            (
                Refusal::DomainNotVerified { domain: "b.example".parse().unwrap() },
                "550 5.7.1 domain_not_verified: ",
            ),
            (
                Refusal::SandboxNotSetUp { domain: "b.example".parse().unwrap() },
                "550 5.7.1 domain_not_verified: the sandbox is not set up on this server",
            ),
            (
                Refusal::SandboxRestricted { allowed: "a@b.example".parse().unwrap() },
                "550 5.7.1 sandbox_restricted: ",
            ),
            (Refusal::ProductionRequired, "550 5.7.1 production_access_required: "),
            (Refusal::Full, "452 4.3.1 "),
            (Refusal::Unavailable, "451 4.3.0 "),
            (Refusal::TooLarge { bytes_max: 1 }, "552 5.3.4 "),
            (Refusal::Message(MessageError::Loop), "554 5.4.6 "),
        ] {
            assert!(refused(&refusal, Timestamp::UNIX_EPOCH).to_string().starts_with(start), "{refusal}");
        }
    }
    #[test]
    fn who_has_used_up_the_plan_tries_again_within_a_day_or_not_at_all() {
        for (period, now, start) in [
            (Period::day as fn(Timestamp) -> Period, "2026-01-10T00:00:01Z", "452 4.5.3 plan_limit: "),
            (Period::month, "2026-01-10T00:00:01Z", "550 5.7.1 plan_limit: "),
            (Period::month, "2026-01-31T12:00:00Z", "452 4.5.3 plan_limit: "),
        ] {
            let now: Timestamp = now.parse().unwrap();
            let refusal = Refusal::PlanLimit(Cap { period: period(now), used: 100, cap: 100 });
            let said = refused(&refusal, now).to_string();
            assert!(said.starts_with(start), "{said}");
        }
    }
}
