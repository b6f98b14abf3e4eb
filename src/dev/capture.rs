//! The mail host that catches everything: takes any message for anybody, judges its signatures, and
//! puts it into the inbox.

use std::sync::{Arc, PoisonError, RwLock};

use dns::verdict::{self, PublicKeys};
use mail::address::Address;
use mail::domain::Domain;
use mail::reply::{Enhanced, Reply};
use queue::clock::Clock;
use smtp::answers::{Answer, Answers, Message, Question};
use store::engine::Store;

use super::inbox::{Caught, Inbox, Signature};

/// The DKIM records of the domains here, by name: there is no DNS to ask on a developer's machine.
pub type Records = Arc<RwLock<Vec<(String, String)>>>;

/// The DKIM records of a domain.
pub fn records_of(domain: &Domain) -> [(String, String); 2] {
    let record =
        |selector: &str, value: &str| (format!("{selector}._domainkey.{}", domain.name), value.to_owned());
    let dkim = &domain.dkim;
    [record(&dkim.selector, &dkim.rsa_record), record(&dkim.ed25519_selector(), &dkim.ed25519_record)]
}

/// Answers for the mail host.
#[derive(Clone)]
pub struct Capture {
    /// Where it goes.
    pub inbox: Arc<Inbox>,
    /// The public keys.
    pub records: Records,
    /// Where the domains are, whose keys those are.
    pub store: Store,
    /// The time.
    pub clock: Clock,
}

impl Answers for Capture {
    type Visitor = ();

    async fn answer(&self, _: &mut (), question: Question) -> Answer {
        match question {
            Question::Sender { .. } | Question::Recipient(_) => Answer::Granted,
            Question::Take(message) => self.take(*message).await,
            Question::Authenticate(..) => Answer::Said(Reply::new(
                502,
                Enhanced::new(5, 5, 1),
                "this is the mail host; log in at the submission port",
            )),
        }
    }
}

impl Capture {
    /// Takes note of the keys of the domain that a message comes from: it may have been added a moment ago.
    async fn learn(&self, reverse_path: Option<&Address>) {
        let domain = reverse_path.and_then(|sender| sender.domain().as_str().strip_prefix("rp."));
        let Some(name) = domain.and_then(|name| name.parse().ok()) else { return };
        if let Ok(Some(domain)) = store::domain::by_name(&self.store, &name).await {
            let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
            for record in records_of(&domain) {
                if !records.contains(&record) {
                    records.push(record);
                }
            }
        }
    }

    async fn take(&self, message: Message) -> Answer {
        self.learn(message.envelope.reverse_path.as_ref()).await;
        let keys = self.records.read().unwrap_or_else(PoisonError::into_inner).clone();
        let raw = message.content;
        let dkim = verdict::dkim(raw.clone(), PublicKeys::Given(keys)).await;
        let caught = Caught {
            id: 0,
            sender: message.envelope.reverse_path,
            recipients: message.recipients.into_iter().map(|recipient| recipient.address).collect(),
            received_at: self.clock.now(),
            tls: message.trace.tls.is_some(),
            raw,
            dkim: dkim
                .into_iter()
                .map(|verdict| Signature {
                    domain: verdict.domain,
                    selector: verdict.selector,
                    algorithm: verdict.algorithm.to_owned(),
                    result: verdict.result.as_str().to_owned(),
                })
                .collect(),
        };
        let id = self.inbox.put(caught);
        Answer::Said(Reply::new(250, Enhanced::new(2, 0, 0), format!("caught as message {id}")))
    }
}
