//! What comes back: reports about mail that we sent, and complaints about it.

use mail::address::Address;
use mail::arrival::Arrival;
use thiserror::Error;

/// Whose an address at one of our return-path hosts is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mailbox {
    /// A return path of ours, signed: what comes to it is about one recipient of one email.
    ReturnPath,
    /// Where aggregate reports of DMARC come in (RFC 7489 7.2).
    DmarcReports,
    /// Where complaints come in (RFC 5965).
    Complaints,
}

/// Why what came back could not be booked: it is to come again.
#[derive(Debug, Error)]
pub enum ReturnedError {
    /// The store cannot be read.
    #[error(transparent)]
    Read(#[from] store::engine::ReadError),
    /// The store cannot be written.
    #[error(transparent)]
    Commit(#[from] store::engine::CommitError),
}

/// Takes what comes back.
#[derive(Clone)]
pub struct Returned {}

impl Returned {
    /// Whether an address at a return-path host is one that anything may come back to; asked at RCPT.
    #[must_use]
    pub fn knows(&self, _address: &Address) -> Option<Mailbox> {
        None
    }

    /// Books what came back to an address that is [known](Self::knows): returns when what it says is on disk.
    /// What says nothing that we understand changes nothing, and is taken too: an error would bounce a
    /// bounce (RFC 5321 6.1).
    ///
    /// # Errors
    /// [`ReturnedError`]: nothing was booked.
    pub async fn take(&self, _mailbox: Mailbox, _arrival: &Arrival) -> Result<(), ReturnedError> {
        Ok(())
    }
}
