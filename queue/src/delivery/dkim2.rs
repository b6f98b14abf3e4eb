//! DKIM2: each SMTP transaction adds a signature over its envelope to the message.
//!
//! ```text
//! on disk: Message-Instance · message ─► split ─► DKIM2-Signature · Message-Instance · message
//! ```
//!
//! The part that covers the whole message is computed at acceptance and stored before it (`dns::sign::dkim2`). So each
//! recipient costs one small signature on each attempt, and no copy of the message. If the signature fails, the message
//! is sent without any DKIM2 field.

use std::sync::Arc;

use bytes::Bytes;
use dns::sign::dkim2;
use dns::signing_pool::SigningPool;
use jiff::Timestamp;
use message::address::{Address, DomainName};
use model::task::Task;

use crate::intake::dkim_signing::DkimSigning;
use crate::intake::sender_authorization::SenderAuthorization;

pub struct TransactionSigner {
    sender_authorization: Arc<SenderAuthorization>,
    signing_pool: Arc<SigningPool>,
    /// While transactions are not signed, the stored Message-Instance is removed from messages before they are sent.
    signing: DkimSigning,
}

impl TransactionSigner {
    pub fn new(
        sender_authorization: Arc<SenderAuthorization>,
        signing_pool: Arc<SigningPool>,
        signing: DkimSigning,
    ) -> Self {
        Self { sender_authorization, signing_pool, signing }
    }

    /// Returns the message for this recipient, in a transaction with the envelope sender `sender`.
    pub(crate) async fn sign(
        &self,
        task: &Task,
        sender: Option<&Address>,
        mut message: Vec<Bytes>,
        now: Timestamp,
    ) -> Vec<Bytes> {
        // Only mail with a sending domain starts with our own field: a client could have written one.
        let (Some(domain), Some(first)) = (&task.domain, message.first_mut()) else { return message };
        let Some(length) = dkim2::instance_length(first) else { return message };
        let instance = first.split_to(length);
        if self.signing == DkimSigning::MessagesAndTransactions
            && let Some(signature) = self.signature(task, domain, sender, &instance, now).await
        {
            message.splice(..0, [signature, instance]);
        }
        message
    }

    async fn signature(
        &self,
        task: &Task,
        domain: &DomainName,
        sender: Option<&Address>,
        instance: &Bytes,
        now: Timestamp,
    ) -> Option<Bytes> {
        let unsigned = |error: &dyn std::fmt::Display| {
            tracing::warn!(%error, email.id = %task.id.email, %domain, "message sent without DKIM2 signature");
        };
        let signer = match self.sender_authorization.current_signer(task.account, domain, now).await {
            Ok(signer) => signer?,
            Err(refusal) => {
                unsigned(&refusal);
                return None;
            }
        };
        let signed = self
            .signing_pool
            .sign_transaction(signer, instance.clone(), sender.cloned(), task.address.clone(), now)
            .await;
        signed.inspect_err(|error| unsigned(error)).ok().map(Bytes::from)
    }
}
