//! Capturing mail host: accepts any message for any address, verifies its DKIM signatures and stores it in the inbox.
//! Recipients of the [`simulator`](super::simulator) are refused, deferred, slow, or complain.

use parking_lot::RwLock;
use std::sync::Arc;

use dns::authentication::{self, DkimKeySource};
use message::address::Address;
use message::reply::{Enhanced, SmtpReply};
use model::domain::SendingDomain;
use net::clock::Clock;
use smtp::handler::{Hook, HookVerdict, SessionHandler, SmtpMessage};
use smtp::listener::{Listener, ServedHandler, ServedListener};
use store::engine::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::inbox::{DevInbox, NewMessage, SignatureResult, Source};
use super::simulator::{Behaviour, Complaint};
use super::terminal::Terminal;

/// DKIM records of the local domains, by name. They replace DNS lookups, since these domains are in no DNS.
pub type DkimRecords = Arc<RwLock<Vec<(String, String)>>>;

pub fn dkim_records(domain: &SendingDomain) -> [(String, String); 2] {
    let record = |selector: &str, value: &str| (format!("{selector}._domainkey.{}", domain.name), value.to_owned());
    let dkim = &domain.dkim;
    [record(&dkim.selector, &dkim.rsa_record), record(&dkim.ed25519_selector(), &dkim.ed25519_record)]
}

/// Stores messages in the inbox, and reports them on the terminal.
#[derive(Clone)]
pub struct InboxWriter {
    pub inbox: Arc<DevInbox>,
    pub terminal: Terminal,
    pub clock: Clock,
}

impl InboxWriter {
    /// Stores a message. Returns 250, or 451 if its files cannot be written.
    pub async fn write(&self, message: NewMessage) -> SmtpReply {
        let inbox = Arc::clone(&self.inbox);
        match tokio::task::spawn_blocking(move || inbox.add(message)).await {
            Ok(Ok(entry)) => {
                self.terminal.print_captured(&entry);
                SmtpReply::new(250, Enhanced::new(2, 0, 0), format!("captured as message {}", entry.id))
            }
            Ok(Err(error)) => write_failure_reply(&error),
            Err(error) => write_failure_reply(&error),
        }
    }
}

fn write_failure_reply(error: &dyn std::fmt::Display) -> SmtpReply {
    tracing::error!(%error, "cannot store a message in the inbox");
    SmtpReply::new(451, Enhanced::new(4, 3, 0), "Cannot write to the inbox; see the log")
}

/// Session handler of the capturing mail host.
#[derive(Clone)]
pub struct CaptureHandler {
    pub writer: InboxWriter,
    /// Public keys of the local domains.
    pub records: DkimRecords,
    /// Store with the domains.
    pub store: Store,
    /// Queue of simulated complaints.
    pub complaints: mpsc::Sender<Complaint>,
}

impl ServedHandler for CaptureHandler {
    fn serve(listener: Listener<Self>, shutdown: CancellationToken) -> ServedListener {
        Box::pin(listener.serve(shutdown))
    }
}

impl SessionHandler for CaptureHandler {
    type SessionContext = ();

    async fn handle(&self, (): &mut (), hook: Hook) -> HookVerdict {
        match hook {
            Hook::MailFrom { .. } => HookVerdict::Accept,
            Hook::RcptTo(address) => match Behaviour::of(&address).and_then(Behaviour::refusal) {
                Some(reply) => {
                    self.writer.terminal.print_refused(&address, &reply);
                    HookVerdict::Reply(reply)
                }
                None => HookVerdict::Accept,
            },
            Hook::Submit(message) => self.capture_message(*message).await,
            Hook::Authenticate(..) => HookVerdict::Reply(SmtpReply::new(
                502,
                Enhanced::new(5, 5, 1),
                "this is the mail host; use the submission port to log in",
            )),
        }
    }
}

impl CaptureHandler {
    /// Loads the DKIM keys of the message's return-path domain, which may be new.
    async fn load_domain_keys(&self, reverse_path: Option<&Address>) {
        let domain = reverse_path.and_then(|sender| sender.domain().as_str().strip_prefix("rp."));
        let Some(name) = domain.and_then(|name| name.parse().ok()) else { return };
        if let Ok(Some(domain)) = store::domain::find_by_name(&self.store, &name).await {
            let mut records = self.records.write();
            for record in dkim_records(&domain) {
                if !records.contains(&record) {
                    records.push(record);
                }
            }
        }
    }

    async fn capture_message(&self, message: SmtpMessage) -> HookVerdict {
        // Reserves the message's memory until it is stored.
        let _held = message.memory;
        self.load_domain_keys(message.envelope.reverse_path.as_ref()).await;
        let keys = self.records.read().clone();
        let raw = message.content;
        let dkim = authentication::verify_dkim(raw.clone(), DkimKeySource::Fixed(keys)).await;
        let recipients: Vec<Address> = message.recipients.into_iter().map(|recipient| recipient.address).collect();
        let behaviours: Vec<Behaviour> = recipients.iter().filter_map(Behaviour::of).collect();
        if behaviours.contains(&Behaviour::Slow) {
            tokio::time::sleep(Behaviour::SLOW_FOR).await;
        }
        let complaint = Complaint::for_message(message.envelope.reverse_path.as_ref(), &raw, &self.writer.clock);
        let reply = self
            .writer
            .write(NewMessage {
                source: Source::Delivered,
                sender: message.envelope.reverse_path,
                recipients,
                received_at: self.writer.clock.now(),
                tls: message.trace.tls.is_some(),
                raw,
                dkim: dkim
                    .into_iter()
                    .map(|verdict| SignatureResult {
                        domain: verdict.domain,
                        selector: verdict.selector,
                        algorithm: verdict.algorithm.to_owned(),
                        result: verdict.result.word().to_owned(),
                    })
                    .collect(),
            })
            .await;
        if behaviours.contains(&Behaviour::Complained)
            && let Some(complaint) = complaint
            && self.complaints.try_send(complaint).is_err()
        {
            self.writer.terminal.print_complaint("not sent: too many pending complaints");
        }
        HookVerdict::Reply(reply)
    }
}
