//! How outgoing mail is signed.

/// DKIM signing of outgoing mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DkimSigning {
    /// No signatures; used to measure the cost of signing.
    Off,
    /// Signs each message with DKIM.
    Messages,
    /// Signs each message with DKIM, and each SMTP transaction with DKIM2.
    MessagesAndTransactions,
}
