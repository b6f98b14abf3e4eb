//! DSN reporter: combines the pending DSN rows of an email into one DSN to its sender (RFC 3464, RFC 3461 6).
//!
//! ```text
//! outcome ─►[ … + pending DSN ] ─► wait for other recipients ─►[ DSN + its task − pending DSNs ] ─► dispatcher
//! ```
//!
//! A DSN waits for every recipient of its email with an attempt within the next five minutes, and for no other. So a
//! message to a thousand recipients that are all rejected has one DSN, and a greylisted recipient delays no other's
//! DSN. Later outcomes have a DSN of their own.
//!
//! Pending rows are stored in the partitions of their tasks. Memory holds the emails that they are about, at most
//! [`GROUPS_MAX`]; the others, and after a restart all, are found on disk. The commit of a DSN deletes its pending
//! rows, so each is reported once and none is lost in a crash.
//!
//! A DSN is sent only to a reverse path on a verified domain of the sending account. Anything else would be
//! backscatter. The DSN of a message with REQUIRETLS returns the Message-ID only (RFC 8689 5).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use message::dsn;
use message::header::{self, HeaderSummary};
use message::pending_dsn::PendingDsn;
use model::domain::DomainState;
use model::email::{Email, Ingress};
use model::id::{EmailId, EventId};
use model::recipient::{DsnOptions as Wish, RecipientKind};
use store::engine::{Batch, CommitError, ReadError, StoreError};
use store::pending_dsn::{PendingDsnKey, StoredPendingDsn};

use crate::delivery::delivery_policy::SharedDeliveryPolicy;
use crate::dsn::dsn_request;
use crate::dsn::pending_dsns::{DsnGroup, PendingDsns};
use crate::intake::prepared_message::{DeliveryRequirements, Disposition, EnvelopeRecipient, PreparedMessage};
use crate::intake::task_reservation::TaskReservation;
use crate::scheduler::dispatch::Dispatcher;
use crate::services::Services;

/// Delay in which outcomes are gathered before groups are processed.
const GATHER_DELAY: Duration = Duration::from_millis(100);
/// DSNs built concurrently.
const CONCURRENCY: usize = 8;
/// Commit tries when pending DSNs are written concurrently.
const COMMIT_TRIES_MAX: usize = 20;
/// Delay before a store error is retried.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Builds and sends DSNs.
pub(crate) struct DsnReporter {
    pub(crate) services: Services,
    pub(crate) pending: Arc<PendingDsns>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) policy: Arc<SharedDeliveryPolicy>,
    /// Reporting MTA.
    pub(crate) hostname: DomainName,
}

impl DsnReporter {
    /// Builds and sends DSNs until shutdown.
    pub(crate) async fn run(self: Arc<Self>) {
        let mut next = Timestamp::MAX;
        while !self.services.stop.is_cancelled() {
            tokio::select! {
                () = self.pending.changed.notified() => tokio::time::sleep(GATHER_DELAY).await,
                () = self.services.clock.sleep_until(next) => {}
                () = self.services.stop.cancelled() => return,
            }
            let mut done = self.load_pending_dsns().await;
            let due;
            (due, next) = self.pending.due_groups(self.services.clock.now());
            let reporting = due.into_iter().map(|(key, group)| self.process_dsn_group(key, group));
            let mut reporting = futures_util::stream::iter(reporting).buffer_unordered(CONCURRENCY);
            while let Some(report) = reporting.next().await {
                done = done.and(report);
            }
            if let Err(error) = done {
                store::warn_unless_away!(self.services.store, %error, "cannot send DSNs; retrying");
                tokio::time::sleep(RETRY_DELAY).await;
                self.pending.changed.notify_one();
            }
        }
    }

    /// Loads emails with pending DSNs from disk.
    async fn load_pending_dsns(&self) -> Result<(), StoreError> {
        while let Some(partition) = self.pending.next_unread() {
            let mut from = None;
            loop {
                let found = store::pending_dsn::next_email(&self.services.store, partition, from).await;
                let found = found.inspect_err(|_| self.pending.scan_partition(partition))?;
                let Some((key, at, next)) = found else { break };
                if !self.pending.add(key, partition, at) {
                    return Ok(());
                }
                from = Some(next);
            }
        }
        Ok(())
    }

    /// Checks one group and sends its DSN unless a recipient is awaited.
    async fn process_dsn_group(self: &Arc<Self>, key: PendingDsnKey, group: DsnGroup) -> Result<(), StoreError> {
        let reported = self.send_dsn_unless_waiting(key, &group).await;
        if reported.is_err() {
            self.pending.retry(key);
        }
        reported
    }

    async fn send_dsn_unless_waiting(self: &Arc<Self>, key: PendingDsnKey, group: &DsnGroup) -> Result<(), StoreError> {
        let (now, (account, email)) = (self.services.clock.now(), key);
        if now < group.until {
            let waiting = store::email::next_recipient_due_by(
                &self.services.store,
                account,
                email,
                group.next_awaited,
                group.until,
            )
            .await?;
            if let Some(recipient) = waiting {
                self.pending.wait_for(key, recipient);
                return Ok(());
            }
        }
        // Rows in partitions of other nodes are reported by those nodes.
        let partitions: Vec<u16> =
            group.partitions.iter().copied().filter(|partition| self.services.leases.is_active(*partition)).collect();
        let mut attempts = 0;
        loop {
            attempts += 1;
            match self.send_dsn(key, &partitions, now).await {
                // A pending DSN was written concurrently.
                Err(StoreError::Commit(CommitError::Conflict { .. })) if attempts < COMMIT_TRIES_MAX => {}
                reported => {
                    reported?;
                    self.pending.finish(key, now);
                    return Ok(());
                }
            }
        }
    }

    /// Sends one DSN for all pending rows of an email in these partitions.
    async fn send_dsn(
        self: &Arc<Self>,
        key: PendingDsnKey,
        partitions: &[u16],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut found: Vec<StoredPendingDsn> = Vec::new();
        for partition in partitions {
            found.extend(store::pending_dsn::list_by_email(&self.services.store, *partition, key).await?);
        }
        let Some(first) = partitions.first().copied().filter(|_| !found.is_empty()) else { return Ok(()) };
        let mut batch = Batch::progress();
        found.iter().for_each(|row| row.remove(&mut batch));
        let mut is_fenced = self.services.leases.fence_partitions(&mut batch, partitions.iter().copied());
        let mut notices: Vec<PendingDsn> = found.into_iter().map(|row| row.notice).collect();
        notices.sort_by_key(|notice| (notice.action, notice.recipient));
        let staged = self.prepare_dsn(key, &notices, now).await?;
        // If no owned partition serves the DSN's domain, use a partition of its pending rows.
        let reserve = |staged: &PreparedMessage| {
            staged.assign_partitions(|domain| self.services.leases.choose_for_domain(domain).or(Some(first)))
        };
        let mut reservation = None;
        if let Some((staged, placed)) = staged.as_ref().and_then(|staged| Some((staged, reserve(staged)?))) {
            is_fenced &= self.services.leases.fence_partitions(&mut batch, placed.partitions());
            staged.write_rows(&mut batch, &placed, EventId::new(now, self.services.entropy.unique_bits()));
            reservation = Some(TaskReservation::reserve(&self.dispatcher, placed.tasks));
        }
        if !is_fenced {
            return Ok(());
        }
        match (self.services.store.commit(batch).await, reservation) {
            (Ok(()), Some(reservation)) => {
                let chunks = staged.map(|staged| staged.chunks).unwrap_or_default();
                reservation.confirm(&chunks);
            }
            (Err(CommitError::Unknown(reason)), Some(reservation)) => {
                reservation.mark_in_doubt();
                return Err(CommitError::Unknown(reason).into());
            }
            (committed, _) => committed?,
        }
        self.services.outbox_wakeup.notify_one();
        self.services.outcome_recorded.notify_waiters();
        Ok(())
    }

    /// Builds the DSN; `None` if the sender must not receive one.
    async fn prepare_dsn(
        &self,
        key: PendingDsnKey,
        notices: &[PendingDsn],
        now: Timestamp,
    ) -> Result<Option<PreparedMessage>, ReadError> {
        let Some(email) = store::email::get_without_recipients(&self.services.store, key.0, key.1).await? else {
            return Ok(None);
        };
        let Some(to) = email.reverse_path.as_ref().filter(|_| dsn_request::sends_dsn(&email)) else {
            return Ok(None);
        };
        match store::domain::find_by_name(&self.services.store, to.domain()).await? {
            Some(domain) if domain.account == email.account && domain.state == DomainState::Verified => {}
            _ => return Ok(None),
        }
        let body = store::email::get_body(&self.services.store, key.0, key.1).await?.unwrap_or_default();
        let (returned, return_full) = returned_content(&email, body);
        let expires_at = now.checked_add(self.policy.current().schedule.give_up_after).unwrap_or(Timestamp::MAX);
        let id = EmailId::new(now, self.services.entropy.unique_bits());
        let host = &self.hostname;
        let Ok(from) = Address::new("MAILER-DAEMON", host.clone()) else { return Ok(None) };
        let message_id = header::generate_message_id(&id.message_id_left(), &from);
        let report = dsn::DsnMessage {
            reporting_host: host,
            to,
            message_id: &message_id,
            now,
            recipients: notices,
            envelope_id: email.envelope_id.as_deref(),
            arrived_at: notices.iter().map(|notice| notice.accepted_at).min().unwrap_or(email.created_at),
            returned: &returned,
            return_full,
        };
        let (bytes, subject) = (Bytes::from(report.compose()), report.subject().to_owned());
        let header = HeaderSummary { to: vec![to.clone().into()], subject, message_id, ..HeaderSummary::default() };
        let notification = dsn_email(&email, from, id, header, bytes.len(), now);
        Ok(Some(prepared_dsn(notification, to.clone(), bytes, expires_at)))
    }
}

/// The content that a DSN about `email` returns, and whether it may return all of it.
///
/// The DSN of a message with REQUIRETLS is redacted: it returns the Message-ID only, whatever RET asks for. It can then
/// be sent without REQUIRETLS, and reaches senders whose host does not offer it (RFC 8689 5).
fn returned_content(email: &Email, body: Bytes) -> (Bytes, bool) {
    if email.require_tls {
        (format!("Message-ID: <{}>\r\n\r\n", email.header.message_id).into(), false)
    } else {
        (body, email.return_full)
    }
}

/// Builds the email row of a DSN.
fn dsn_email(
    email: &Email,
    from: Address,
    id: EmailId,
    header: HeaderSummary,
    size_bytes: usize,
    now: Timestamp,
) -> Email {
    Email {
        header,
        size_bytes: u64::try_from(size_bytes).unwrap_or(u64::MAX),
        ..Email::new(id, email.account, Ingress::System, from.into(), now)
    }
}

fn prepared_dsn(email: Email, to: Address, bytes: Bytes, expires_at: Timestamp) -> PreparedMessage {
    let smtputf8 = to.needs_smtputf8();
    let now = email.created_at;
    let addressee =
        EnvelopeRecipient { address: to, kind: RecipientKind::To, notify: Wish::default(), suppressed: false };
    PreparedMessage {
        email,
        recipients: vec![addressee],
        chunks: vec![bytes],
        sealed_body: None,
        requirements: DeliveryRequirements {
            smtputf8,
            require_tls: false,
            tls_enforced: false,
            tls_optional: false,
            expires_at,
            plan: None,
        },
        disposition: Disposition::Deliver,
        scheduled: None,
        plan_reservation: None,
        storage_reservation: None,
        now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::pending_dsn::DsnAction;
    use model::id::AccountId;

    const BODY: &[u8] = b"From: ada@mine.example\r\nSubject: secret plan\r\n\r\nthe plan\r\n";

    /// Composes the DSN of a message with RET=FULL.
    fn dsn_of(action: DsnAction, require_tls: bool) -> String {
        let (at, host) = (Timestamp::UNIX_EPOCH, "mx.mine.example".parse().unwrap());
        let to: Address = "ada@mine.example".parse().unwrap();
        let header = HeaderSummary { message_id: "1@mine.example".to_owned(), ..HeaderSummary::default() };
        let new = Email::new(EmailId::new(at, 1), AccountId::new(at, 1), Ingress::Submission, to.clone().into(), at);
        let email = Email { header, return_full: true, require_tls, ..new };
        let notice = PendingDsn {
            recipient: 0,
            address: "bob@remote.example".parse().unwrap(),
            action,
            original_recipient: None,
            expired: false,
            reply: None,
            remote_host: None,
            explanation: "The message cannot be delivered and will not be retried.".to_owned(),
            accepted_at: at,
            last_attempt_at: at,
            smtputf8: false,
        };
        let (returned, return_full) = returned_content(&email, Bytes::from_static(BODY));
        let report = dsn::DsnMessage {
            reporting_host: &host,
            to: &to,
            message_id: "2@mx.mine.example",
            now: at,
            recipients: &[notice],
            envelope_id: None,
            arrived_at: at,
            returned: &returned,
            return_full,
        };
        String::from_utf8(report.compose()).unwrap()
    }

    #[test]
    fn the_dsn_of_a_requiretls_message_returns_the_message_id_only() {
        for action in [DsnAction::Failed, DsnAction::Delayed(Timestamp::UNIX_EPOCH), DsnAction::Relayed] {
            let redacted = dsn_of(action, true);
            assert!(redacted.contains("Final-Recipient: rfc822; bob@remote.example\r\n"), "{redacted}");
            assert!(redacted.contains("text/rfc822-headers\r\n\r\nMessage-ID: <1@mine.example>\r\n"), "{redacted}");
            assert!(!redacted.contains("plan") && !redacted.contains("From: ada@"), "{redacted}");
        }
        let full = dsn_of(DsnAction::Failed, false);
        assert!(full.contains("Subject: secret plan") && full.contains("the plan"), "{full}");
    }
}
