//! Stands in for the hall until it exists. To be deleted.
#![allow(missing_docs, clippy::missing_errors_doc, clippy::unused_async, clippy::disallowed_methods)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use mail::address::{Address, Name};
use mail::draft::{Content, Draft};
use mail::email::{Email, EmailStatus, HeaderFacts};
use mail::event::EventKind;
use mail::id::EmailId;
use mail::message::MessageError;
use mail::recipient::{Recipient, RecipientState};
use store::access::Tenant;
use store::engine::{Batch, Body, Purpose, Store};

#[derive(Debug, Default)]
struct World {
    count: u128,
    refuse: Option<Refusal>,
}

#[derive(Clone, Debug)]
pub struct Hall {
    store: Store,
    world: Arc<Mutex<World>>,
}

pub struct Accepted {
    pub id: EmailId,
    pub status: EmailStatus,
}
#[derive(Debug, Clone)]
pub enum Refusal {
    DomainNotVerified { domain: Name },
    SandboxRestricted { allowed: Address },
    ProductionRequired,
    Suspended,
    Message(MessageError),
    Invalid { field: String, message: String },
    TooLarge { bytes_max: u64 },
    TooManyRecipients { max: usize },
    Full,
    Unavailable,
    Unconfirmed { id: EmailId },
}

pub struct Clock;
impl Clock {
    #[must_use]
    pub fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}
pub struct Entropy(u128);
impl Entropy {
    #[must_use]
    pub fn u128(&self) -> u128 {
        self.0
    }
}

impl Hall {
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, world: Arc::default() }
    }
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub fn refuse(&self, refusal: Option<Refusal>) {
        self.world().refuse = refusal;
    }
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }
    #[must_use]
    pub fn clock(&self) -> Clock {
        Clock
    }
    #[must_use]
    pub fn entropy(&self) -> Entropy {
        let mut world = self.world();
        world.count += 1;
        Entropy(world.count)
    }
    pub fn ready(&self) -> Result<(), Refusal> {
        Ok(())
    }
    pub async fn accept(&self, tenant: &Tenant, draft: Draft) -> Result<Accepted, Refusal> {
        if let Some(refusal) = self.world().refuse.clone() {
            return Err(refusal);
        }
        let now = Timestamp::from_millisecond(self.clock().now().as_millisecond()).unwrap_or_default();
        let id = EmailId::new(now, self.entropy().u128());
        let Content::Parts(parts) = draft.content else { return Err(Refusal::Unavailable) };
        let message = mail::compose::compose(&parts, "x@y", now);
        let email = Email {
            id,
            account: tenant.account().id,
            door: draft.door,
            from: parts.from.clone(),
            reverse_path: None,
            domain: None,
            facts: HeaderFacts {
                to: parts.to.clone(),
                cc: parts.cc.clone(),
                bcc: parts.bcc.clone(),
                reply_to: parts.reply_to.clone(),
                subject: parts.subject.clone(),
                message_id: "x@y".into(),
            },
            tags: draft.tags,
            category: draft.category,
            size_bytes: message.len() as u64,
            envelope_id: None,
            return_full: false,
            created_at: now,
        };
        let recipients: Vec<Recipient> = draft
            .recipients
            .into_iter()
            .enumerate()
            .map(|(n, r)| Recipient {
                index: u16::try_from(n).unwrap_or(u16::MAX),
                address: r.address,
                kind: r.kind,
                state: RecipientState::Queued,
                attempts: 0,
                last_response: None,
                mx_host: None,
                last_event: (EventKind::Sent, now),
                delivered_at: None,
                bounced_at: None,
                next_attempt_at: Some(now),
            })
            .collect();
        let mut batch = Batch::new(Purpose::Intake);
        let mut body = Body::default();
        body.push(message);
        store::email::create(&mut batch, &email, &recipients, body);
        self.store.commit(batch).await.map_err(|_| Refusal::Unavailable)?;
        Ok(Accepted { id, status: EmailStatus::Sent })
    }
}
