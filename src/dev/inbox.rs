//! The development inbox: what was caught, in memory, the newest first, within bounds.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use mail::address::Address;
use tokio::sync::watch;

/// Messages kept; the oldest goes.
const MESSAGES_MAX: usize = 1_000;
/// Bytes of messages kept.
const BYTES_MAX: usize = 256 << 20;

/// What a signature on a message came to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Signature {
    /// Who signed.
    pub domain: String,
    /// With which of its keys.
    pub selector: String,
    /// `rsa-sha256`, `ed25519-sha256`.
    pub algorithm: String,
    /// `pass`, `fail`, …
    pub result: String,
}

/// A message that arrived.
#[derive(Debug, Clone)]
pub struct Caught {
    /// Its number, from 1.
    pub id: u64,
    /// MAIL FROM.
    pub sender: Option<Address>,
    /// RCPT TO.
    pub recipients: Vec<Address>,
    /// When.
    pub received_at: Timestamp,
    /// Over TLS.
    pub tls: bool,
    /// The bytes as they came.
    pub raw: Bytes,
    /// Its signatures.
    pub dkim: Vec<Signature>,
}

#[derive(Debug, Default)]
struct Shelf {
    messages: VecDeque<Caught>,
    bytes: usize,
    caught: u64,
}

/// The inbox.
#[derive(Debug)]
pub struct Inbox {
    shelf: Mutex<Shelf>,
    changed: watch::Sender<u64>,
}

impl Default for Inbox {
    fn default() -> Self {
        Self { shelf: Mutex::default(), changed: watch::Sender::new(0) }
    }
}

impl Inbox {
    /// Puts a message in, and gives it its number.
    pub fn put(&self, mut message: Caught) -> u64 {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.caught += 1;
        message.id = shelf.caught;
        shelf.bytes += message.raw.len();
        shelf.messages.push_front(message);
        while shelf.messages.len() > MESSAGES_MAX || (shelf.bytes > BYTES_MAX && shelf.messages.len() > 1) {
            if let Some(old) = shelf.messages.pop_back() {
                shelf.bytes -= old.raw.len();
            }
        }
        // Told under the lock: of two at once the lower number must not be told last.
        self.changed.send_replace(shelf.caught);
        shelf.caught
    }

    /// All messages, the newest first.
    #[must_use]
    pub fn list(&self) -> Vec<Caught> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner).messages.iter().cloned().collect()
    }

    /// One message.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Caught> {
        let shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.messages.iter().find(|message| message.id == id).cloned()
    }

    /// Throws everything away.
    pub fn clear(&self) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.messages.clear();
        shelf.bytes = 0;
        self.changed.send_replace(shelf.caught);
    }
}
