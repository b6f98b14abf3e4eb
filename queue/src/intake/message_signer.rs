//! Signing of accepted messages (DKIM, RFC 6376) on the threads of the signing pool.

use std::sync::Arc;

use bytes::Bytes;
use dns::signing_pool::SigningPool;
use jiff::Timestamp;

use crate::intake::dkim_signing::DkimSigning;
use crate::intake::sender_authorization::SendingIdentity;
use crate::intake::submit_error::SubmitError;

pub struct MessageSigner {
    pool: Arc<SigningPool>,
    signing: DkimSigning,
}

impl MessageSigner {
    pub fn new(pool: Arc<SigningPool>, signing: DkimSigning) -> Self {
        Self { pool, signing }
    }

    /// Returns the chunks of a message behind its signatures; unchanged if the sender has no signer.
    pub(crate) async fn sign(
        &self,
        sender: &SendingIdentity,
        chunks: Vec<Bytes>,
        now: Timestamp,
    ) -> Result<Vec<Bytes>, SubmitError> {
        let Some(signer) = &sender.signer else { return Ok(chunks) };
        let (signer, message) = (Arc::clone(signer), chunks.clone());
        let signed = match self.signing {
            DkimSigning::MessagesAndTransactions => self.pool.sign_with_instance(signer, message, now).await,
            DkimSigning::Messages | DkimSigning::Off => self.pool.sign(signer, message, now).await,
        };
        let signatures = signed.map_err(|error| match error {
            dns::sign::SignError::Failed => {
                tracing::error!(domain = %sender.name, "a message could not be signed");
                SubmitError::SigningFailed
            }
            error => SubmitError::Invalid { field: "message", message: error.to_string() },
        })?;
        let mut signed = Vec::with_capacity(chunks.len() + 1);
        signed.push(Bytes::from(signatures));
        signed.extend(chunks);
        Ok(signed)
    }
}
