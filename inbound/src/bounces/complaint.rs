//! Complaints: finds the recipient and checks the proof.
//!
//! ```text
//! a signed return path in the report  ─► that recipient; it cannot be forged
//! the email's Message-ID              ─► the email, if the report is proven:
//!     its author is a trusted reporter (DKIM or SPF, aligned), or
//!     the enclosed header has one of the email's DKIM signatures
//! ```
//!
//! A `Message-ID` alone is no proof: it appears in archives and quoted replies, and a complaint suppresses permanently
//! (RFC 6449 5.2: consumers of reports check their sender). All recipients of an email have the same header. So a
//! report about an email to several must come from a trusted reporter and name the recipient. An unproven report is
//! counted and logged, and has no effect.

use bytes::Bytes;
use message::address::Address;
use message::bounce::feedback_reporter::{self, FeedbackReporter};
use message::bounce::{Complaint, dkim_signature_values};
use message::header;
use message::inbound_message::InboundMessage;
use model::id::EmailId;
use model::recipient::Recipient;
use model::task::TaskId;
use queue::sealed_body;
use store::email::EmailWithRecipients;

use super::apply::BounceReport;
use super::{BounceError, BounceProcessor, BouncedRecipient};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ComplaintProof {
    /// A trusted reporter wrote it.
    Reporter,
    /// It contains a DKIM signature of the email, which only its recipients have.
    Signature,
}

impl BounceProcessor {
    /// Applies a complaint received at a complaint address.
    pub(super) async fn apply_complaint(
        &self,
        complaint: Complaint,
        arrival: &InboundMessage,
        trusted: &[FeedbackReporter],
    ) -> Result<&'static str, BounceError> {
        let bounced = match self.find_by_return_path(&complaint).await? {
            Some(bounced) => bounced,
            None => {
                let Some(found) = self.find_by_message_id(&complaint).await? else { return Ok("unknown") };
                let proof = self.find_proof(&found, &complaint, arrival, trusted).await?;
                let recipient = proof.and_then(|proof| complained_recipient(&found, &complaint, proof));
                let Some(recipient) = recipient else {
                    tracing::info!(email.id = %found.email.id, peer = %arrival.peer, proof = ?proof,
                        "complaint ignored: it does not prove which recipient it is about");
                    return Ok("unproven");
                };
                let task = TaskId { email: found.email.id, recipient: recipient.index };
                BouncedRecipient { account: found.email.account, task }
            }
        };
        self.apply(
            bounced,
            &BounceReport::Complaint(complaint.with_default_arrival(arrival.received_at)),
            arrival.received_at,
        )
        .await
    }

    async fn find_by_return_path(&self, complaint: &Complaint) -> Result<Option<BouncedRecipient>, BounceError> {
        for path in &complaint.return_paths {
            if let Some(recipient) = self.find_recipient(path).await? {
                return Ok(Some(recipient));
            }
        }
        Ok(None)
    }

    /// Finds the email by its `Message-ID`, which contains the email's id if this service composed it.
    async fn find_by_message_id(&self, complaint: &Complaint) -> Result<Option<EmailWithRecipients>, BounceError> {
        let Some((id, domain)) = complaint.message_id.as_deref().and_then(|id| id.rsplit_once('@')) else {
            return Ok(None);
        };
        let Ok(email) = format!("{}{}", EmailId::PREFIX, id.to_ascii_uppercase()).parse::<EmailId>() else {
            return Ok(None);
        };
        let Some(account) = self.find_account(domain.parse().ok()).await? else { return Ok(None) };
        Ok(store::email::get(&self.services.store, account, email).await?)
    }

    async fn find_proof(
        &self,
        found: &EmailWithRecipients,
        complaint: &Complaint,
        arrival: &InboundMessage,
        trusted: &[FeedbackReporter],
    ) -> Result<Option<ComplaintProof>, BounceError> {
        if feedback_reporter::is_trusted_author(trusted, arrival) {
            return Ok(Some(ComplaintProof::Reporter));
        }
        if complaint.signatures.is_empty() {
            return Ok(None);
        }
        let (store, email) = (&self.services.store, &found.email);
        let stored = store::email::get_body(store, email.account, email.id).await?;
        // A body that does not open proves nothing.
        let open = |stored| sealed_body::open(&self.keys.vault, email.account, email.id, stored).ok();
        let sent = stored.and_then(open);
        let sent_signatures = sent.as_ref().map(header_bytes).map(dkim_signature_values).unwrap_or_default();
        let has_signature =
            sent_signatures.iter().any(|sent_signatures| complaint.signatures.contains(sent_signatures));
        Ok(has_signature.then_some(ComplaintProof::Signature))
    }
}

fn header_bytes(message: &Bytes) -> &[u8] {
    message.get(..header::parse_fields(message).1).unwrap_or_default()
}

/// Returns the recipient that the complaint is about; `None` if it cannot be determined.
fn complained_recipient<'f>(
    found: &'f EmailWithRecipients,
    complaint: &Complaint,
    proof: ComplaintProof,
) -> Option<&'f Recipient> {
    match (found.recipients.as_slice(), proof) {
        ([recipient], _) => Some(recipient),
        (several, ComplaintProof::Reporter) => several
            .iter()
            .find(|recipient| complaint.recipients.iter().any(|named| is_same_mailbox(named, &recipient.address))),
        (_, ComplaintProof::Signature) => None,
    }
}

fn is_same_mailbox(left: &Address, right: &Address) -> bool {
    left.domain() == right.domain() && left.local_part().eq_ignore_ascii_case(right.local_part())
}
