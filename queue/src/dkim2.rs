//! DKIM2: a message is signed once more for each transaction that carries it, with the envelope of that transaction.
//!
//! ```text
//! on disk: Message-Instance · message ─► taken apart ─► DKIM2-Signature · Message-Instance · message
//! ```
//!
//! What takes the whole message is made when it is accepted and lies before it (`dns::sign::dkim2`). So a recipient
//! costs one small signature, wherever and however often it is tried, and nothing is copied. Whatever is in the way
//! of that signature, the mail goes without: then nothing says that it was to have one.

use std::sync::Arc;

use bytes::Bytes;
use dns::sign::dkim2;
use dns::signing_pool::SigningPool;
use jiff::Timestamp;
use mail::address::{Address, DomainName};
use mail::task::Task;

use crate::accept::DkimSigning;
use crate::sender::SenderAuthorization;

/// Signs for transactions.
pub(crate) struct TransactionSigner {
    sender_authorization: Arc<SenderAuthorization>,
    signing_pool: Arc<SigningPool>,
    /// As long as transactions are not signed, what was accepted before is sent without.
    signing: DkimSigning,
}

impl TransactionSigner {
    pub(crate) fn new(
        sender_authorization: Arc<SenderAuthorization>,
        signing_pool: Arc<SigningPool>,
        signing: DkimSigning,
    ) -> Self {
        Self { sender_authorization, signing_pool, signing }
    }

    /// A message as it goes to this recipient, in a transaction from `sender`.
    pub(crate) async fn sign(
        &self,
        task: &Task,
        sender: Option<&Address>,
        mut message: Vec<Bytes>,
        now: Timestamp,
    ) -> Vec<Bytes> {
        // Of a domain's mail the first lines are ours, whatever a client has written.
        let (Some(domain), Some(first)) = (&task.domain, message.first_mut()) else { return message };
        let Some(length) = dkim2::instance_length(first) else { return message };
        let instance = first.split_to(length);
        if self.signing == DkimSigning::MessagesAndTransactions
            && let Some(signature) = self.signature(task, domain, (sender, &instance), now).await
        {
            message.splice(..0, [signature, instance]);
        }
        message
    }

    async fn signature(
        &self,
        task: &Task,
        domain: &DomainName,
        (sender, instance): (Option<&Address>, &Bytes),
        now: Timestamp,
    ) -> Option<Bytes> {
        let unsigned = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, email.id = %task.id.email, %domain, "a message goes without DKIM2");
        };
        let signer = match self.sender_authorization.current_signer(task.account, domain, now).await {
            Ok(signer) => signer?,
            Err(refusal) => {
                unsigned(&refusal);
                return None;
            }
        };
        let envelope = (sender.cloned(), task.address.clone());
        let signed = self.signing_pool.sign_transaction(signer, instance.clone(), envelope, now).await;
        signed.inspect_err(|error| unsigned(error)).ok().map(Bytes::from)
    }
}
